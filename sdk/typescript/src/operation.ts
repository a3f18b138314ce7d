/** One call of the interface: its method, its path, and when it is made again. "never" is: only if not one byte was written. @internal */
export type Operation = readonly [method: string, path: string, repeat: "safe" | "key" | "never"];
