/** The value of every series at a metrics address, by its name and labels as they stand in the text. */
export async function scrape(address: string): Promise<ReadonlyMap<string, number>> {
  // A connection of its own: one that was kept may just be closing.
  const headers = { connection: "close" };
  const text = await (await fetch(`http://${address}/metrics`, { headers })).text();
  const series = text.split("\n").filter((line) => line !== "" && !line.startsWith("#"));
  return new Map(series.map(seriesOf));
}

function seriesOf(line: string): [name: string, value: number] {
  const end = line.lastIndexOf(" ");
  return [line.slice(0, end), Number(line.slice(end + 1))];
}
