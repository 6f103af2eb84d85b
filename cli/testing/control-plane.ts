/** A control plane for tests of commands: keeps what it was asked, and answers as it is told. */

export interface Asked {
  method: string
  /** The path and its query. */
  target: string
  /** Null where there was none. */
  body: unknown
}

export interface RecordingControlPlane {
  readonly requests: Asked[]
  /** In which commands find it, with a credential and without anybody's profile. */
  readonly environment: Readonly<Record<string, string>>
  stop(): Promise<void>
}

export function recordingControlPlane(
  answer: (asked: Asked & { path: string; headers: Headers }) => Response | object,
): RecordingControlPlane {
  const requests: Asked[] = []
  const server = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    async fetch(request) {
      const { pathname: path, search } = new URL(request.url)
      const text = await request.text()
      const asked = { method: request.method, target: path + search, body: text === '' ? null : JSON.parse(text) }
      requests.push(asked)
      const answered = answer({ ...asked, path, headers: request.headers })
      return answered instanceof Response ? answered : Response.json(answered)
    },
  })
  const environment = {
    SERVICE_API_URL: server.url.origin,
    SERVICE_API_TOKEN: 'gth_x',
    XDG_CONFIG_HOME: '/nonexistent',
  }
  return { requests, environment, stop: () => server.stop(true) }
}
