/** A JSON-RPC 2.0 error (section 5.1), passed on as its sender wrote it. */
export class McpError extends Error {
  readonly code: number
  readonly data: unknown

  constructor(code: number, message: string, data?: unknown) {
    super(message)
    this.name = 'McpError'
    this.code = code
    this.data = data
  }
}
