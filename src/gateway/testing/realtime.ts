/** A provider of realtime sessions that says what a test tells it to, and a gateway in front of it. */
import type { Settings } from '../../config.ts'
import { isObject, type JsonObject, parseObject } from '../../languages/reading/json-value.ts'
import { systemClock } from '../../lib/clock.ts'
import { newId } from '../../lib/ids.ts'
import { silentLog } from '../../lib/log/log.ts'
import { createGateway, type GatewayServer } from '../server.ts'
import { openSocket, type TestSocket } from './socket.ts'
import { createTestWorker, type TestWorker, testProvider, testSettings } from './worker.ts'

/** One session as the provider has it. */
export interface ProviderSession {
  /** Its events so far, in order. */
  readonly received: JsonObject[]
  /** The settings with which it began. */
  readonly created: JsonObject
  readonly headers: Headers
  readonly url: string
  tell(event: object | string | Uint8Array): void
  close(code?: number): void
  readonly isOpen: () => boolean
  /** Bytes that wait to be read by the gateway. */
  readonly waiting: () => number
}

export interface RealtimeScript {
  /** Called for each event of the gateway. */
  on?(event: JsonObject, session: ProviderSession): void
  /** The settings of `session.created`; null sends nothing at first. */
  created?: JsonObject | null
  /** Answers the handshake in place of a session. */
  refuse?: () => Response
}

export interface RealtimeGateway {
  worker: TestWorker
  gateway: GatewayServer
  url: string
  secret: string
  /** The sessions with the provider, in order. */
  sessions: ProviderSession[]
  script: RealtimeScript
  connect(query?: string, headers?: Record<string, string>): Promise<RealtimeClient>
  stop(): Promise<void>
}

export interface RealtimeClient {
  socket: TestSocket
  send(event: object): void
  /** The next event of a type; those before it are dropped. */
  next(type: string): Promise<JsonObject>
  /** All events up to the next of a type. */
  until(type: string): Promise<JsonObject[]>
}

export const speechDetection = {
  type: 'realtime',
  audio: { input: { turn_detection: { type: 'server_vad', create_response: true, idle_timeout_ms: null } } },
}

export interface RealtimeProvider {
  baseUrl: string
  /** Its sessions, in order. */
  sessions: ProviderSession[]
  script: RealtimeScript
  stop(): Promise<void>
}

export function startRealtimeProvider(): RealtimeProvider {
  const sessions: ProviderSession[] = []
  const script: RealtimeScript = {}
  const provider = Bun.serve<ProviderSession>({
    port: 0,
    development: false,
    fetch(request, server) {
      if (script.refuse !== undefined) return script.refuse()
      const created = script.created ?? {}
      const session = { received: [], created, headers: request.headers, url: request.url }
      const unopened = { tell: () => undefined, close: () => undefined, isOpen: () => false, waiting: () => 0 }
      return server.upgrade(request, { data: { ...session, ...unopened } })
        ? undefined
        : new Response(null, { status: 400 })
    },
    websocket: {
      backpressureLimit: 2 ** 30,
      open(peer) {
        Object.assign(peer.data, {
          tell: (event: object | string | Uint8Array) =>
            void peer.send(typeof event === 'string' || event instanceof Uint8Array ? event : JSON.stringify(event)),
          close: (code = 1000) => peer.close(code),
          isOpen: () => peer.readyState === WebSocket.OPEN,
          waiting: () => peer.getBufferedAmount(),
        })
        sessions.push(peer.data)
        const { created = { type: 'realtime', audio: { input: { turn_detection: null } } } } = script
        if (created !== null) peer.data.tell({ type: 'session.created', event_id: 'e0', session: created })
      },
      message(peer, text) {
        const event = parseObject(String(text)) ?? {}
        peer.data.received.push(event)
        script.on?.(event, peer.data)
      },
    },
  })
  return { baseUrl: `http://127.0.0.1:${provider.port}`, sessions, script, stop: () => provider.stop(true) }
}

export async function startRealtime(settings: Partial<Settings> = {}): Promise<RealtimeGateway> {
  const provider = startRealtimeProvider()
  const { sessions, script } = provider
  const worker = createTestWorker()
  worker.upstreams.push(testProvider({ baseUrl: provider.baseUrl }))
  const gateway = createGateway({
    worker,
    settings: testSettings(settings),
    fetch,
    clock: systemClock,
    newId,
    log: silentLog,
    tokenCounter: { count: async () => null },
    documents: { openapi: async () => ({}) },
  })
  const server = Bun.serve({
    port: 0,
    development: false,
    fetch: (request, self) => gateway.fetch(request, self),
    websocket: gateway.websocket,
  })
  const url = `http://127.0.0.1:${server.port}`
  const secret = worker.addToken()
  return {
    worker,
    gateway,
    url,
    secret,
    sessions,
    script,
    async connect(query = '?model=gpt-realtime', headers = {}) {
      const address = `${url.replace('http', 'ws')}/v1/realtime${query}`
      return clientOf(await openSocket(address, { authorization: `Bearer ${secret}`, ...headers }))
    },
    async stop() {
      await gateway.drain()
      await server.stop(true)
      await provider.stop()
    },
  }
}

/** A connection as a client of realtime sessions. */
export function clientOf(socket: TestSocket): RealtimeClient {
  const until = async (type: string) => {
    const events: JsonObject[] = []
    for (;;) {
      const [text = ''] = await socket.frames(1)
      const event = parseObject(text) ?? {}
      events.push(event)
      if (event.type === type) return events
    }
  }
  return {
    socket,
    send: (event) => socket.send(JSON.stringify(event)),
    until,
    next: async (type) => (await until(type)).at(-1) ?? {},
  }
}

export interface Spoken {
  id?: string
  /** The pieces of the transcript. */
  words?: readonly string[]
  /** Sound before each piece; none for an answer in writing. */
  sound?: string
  usage?: object | null
  status?: string
  details?: object
}

export const usage = {
  total_tokens: 60,
  input_tokens: 40,
  output_tokens: 20,
  input_token_details: { text_tokens: 10, audio_tokens: 30, cached_tokens: 0 },
  output_token_details: { text_tokens: 5, audio_tokens: 15 },
}

/** The events of one response with one message. */
export function spoken({
  id = 'resp_1',
  words = ['Good ', 'morning'],
  sound = 'AAAA',
  ...rest
}: Spoken = {}): JsonObject[] {
  const item = { id: `item_of_${id}`, type: 'message', role: 'assistant', content: [] as object[] }
  const place = { response_id: id, item_id: item.id, output_index: 0, content_index: 0 }
  const transcript = words.join('')
  const whole = { ...item, status: 'completed', content: [{ type: 'output_audio', transcript }] }
  const response = { object: 'realtime.response', id, status: 'in_progress', output: [], usage: null }
  const { status = 'completed', details = null } = rest
  return [
    { type: 'response.created', response },
    { type: 'response.output_item.added', response_id: id, output_index: 0, item },
    { type: 'conversation.item.added', previous_item_id: null, item },
    { type: 'response.content_part.added', ...place, part: { type: 'audio', transcript: '' } },
    ...words.flatMap((delta) => [
      { type: 'response.output_audio_transcript.delta', ...place, delta },
      { type: 'response.output_audio.delta', ...place, delta: sound },
    ]),
    { type: 'response.output_audio.done', ...place },
    { type: 'response.output_audio_transcript.done', ...place, transcript },
    { type: 'response.content_part.done', ...place, part: { type: 'audio', transcript } },
    { type: 'response.output_item.done', response_id: id, output_index: 0, item: whole },
    { type: 'conversation.item.done', previous_item_id: null, item: whole },
    {
      type: 'response.done',
      response: {
        ...response,
        status,
        status_details: details,
        output: [whole],
        usage: rest.usage === undefined ? usage : rest.usage,
      },
    },
  ]
}

/** Answers each `response.create` with these events. */
export const answering =
  (answer: (number: number) => readonly object[]): NonNullable<RealtimeScript['on']> =>
  ({ type, session }, provider) => {
    const count = provider.received.filter((event) => event.type === 'response.create').length
    if (type === 'response.create') for (const event of answer(count)) provider.tell(event)
    if (type !== 'session.update' || !isObject(session)) return
    const updates = provider.received.filter((event) => event.type === 'session.update')
    const settings = updates.reduce((all, event) => merged(all, event.session), provider.created)
    provider.tell({ type: 'session.updated', session: settings })
  }

/** Settings with others laid over them, as a provider keeps them. */
function merged(settings: JsonObject, others: unknown): JsonObject {
  const all = { ...settings }
  for (const [name, value] of Object.entries(isObject(others) ? others : {})) {
    const present = all[name]
    all[name] = isObject(present) && isObject(value) ? merged(present, value) : value
  }
  return all
}
