/** Header lines of a trace, by their names in lower case; values are printable ASCII. */
export type TraceHeaders = Readonly<Record<string, string>>
