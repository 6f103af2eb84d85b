/** An error as JSON-RPC 2.0 writes it (section 5.1), given on as its sender wrote it. */
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

/** JSON-RPC 2.0 section 5.1. */
export const methodNotFound = -32601
export const internalError = -32603
