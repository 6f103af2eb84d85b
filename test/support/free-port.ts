/** A port of this host that nobody listens on at the moment. */
export async function freePort(): Promise<number> {
  const server = Bun.serve({ hostname: '127.0.0.1', port: 0, fetch: () => new Response() })
  const { port } = server
  await server.stop(true)
  return port ?? 0
}
