SAID = "a file of the version"
