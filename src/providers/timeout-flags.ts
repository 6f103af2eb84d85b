/** How timeouts are written on a command line, for MCP servers too. */
export const timeoutFlags = {
  'timeouts.connect_seconds': { name: 'connect-timeout' },
  'timeouts.first_byte_seconds': { name: 'first-byte-timeout' },
  'timeouts.idle_seconds': { name: 'idle-timeout' },
  'timeouts.total_seconds': { name: 'total-timeout' },
} as const
