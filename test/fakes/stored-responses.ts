/**
 * A provider that stores responses and conversations as OpenAI does: it gives them again, page by page, runs responses
 * in the background, cancels and deletes. It keeps everything in memory and knows no owners: anybody with an id gets the
 * object, as with one key for all callers.
 */
import { eventFrames } from './responses.ts'

type Json = Record<string, unknown>

const usage = {
  input_tokens: 11,
  input_tokens_details: { cached_tokens: 0 },
  output_tokens: 7,
  output_tokens_details: { reasoning_tokens: 0 },
  total_tokens: 18,
}

export class StoredResponses {
  readonly responses = new Map<string, Json>()
  readonly inputs = new Map<string, Json[]>()
  readonly conversations = new Map<string, Json>()
  readonly items = new Map<string, Json[]>()
  /** The text of the next responses. */
  says = 'Hello from the store'
  /** Changes an answer before it leaves, as a faulty provider would. */
  lies: ((body: Json, path: string) => Json) | null = null
  #made = 0

  #id(prefix: string): string {
    this.#made += 1
    return `${prefix}_${String(this.#made).padStart(4, '0')}${'a1b2c3d4'.repeat(4)}`
  }

  /** Ends a response that runs in the background. */
  end(id: string, status = 'completed', members: Json = {}): void {
    const response = this.responses.get(id)
    if (response === undefined) throw new Error(`No response ${id}`)
    const ended = status === 'completed' ? { output: [this.#message(this.says)], usage } : {}
    this.responses.set(id, { ...response, status, ...ended, ...members })
  }

  answer(request: Request, text: string): Response {
    const url = new URL(request.url)
    const body: Json = text === '' ? {} : JSON.parse(text)
    const [, , kind = '', id = '', part = '', item = ''] = url.pathname.split('/')
    if (kind === 'responses') {
      if (id === '') return this.#create(body)
      if (id === 'compact')
        return this.#json(
          {
            id: this.#id('resp'),
            object: 'response.compaction',
            created_at: 1,
            output: [{ type: 'compaction', id: 'cmp_1', encrypted_content: 'short' }],
            usage,
          },
          url.pathname,
        )
      return this.#response(request.method, id, part, url)
    }
    if (kind === 'conversations') return this.#conversation(request.method, id, part, item, body, url)
    return this.#missing(url.pathname)
  }

  #message(text: string): Json {
    return {
      id: this.#id('msg'),
      type: 'message',
      status: 'completed',
      role: 'assistant',
      content: [{ type: 'output_text', annotations: [], logprobs: [], text }],
    }
  }

  #create(body: Json): Response {
    const previous = body.previous_response_id ?? null
    const conversation = typeof body.conversation === 'string' ? { id: body.conversation } : (body.conversation ?? null)
    if (typeof previous === 'string' && !this.responses.has(previous)) return this.#missing(previous)
    const { id: held = '' } = (conversation ?? {}) as { id?: string }
    if (held !== '' && !this.conversations.has(held)) return this.#missing(held)
    const isBackground = body.background === true
    const id = this.#id('resp')
    const response: Json = {
      id,
      object: 'response',
      created_at: 1_700_000_000,
      status: isBackground ? 'queued' : 'completed',
      background: isBackground,
      error: null,
      incomplete_details: null,
      instructions: null,
      model: body.model,
      output: isBackground ? [] : [this.#message(this.says)],
      parallel_tool_calls: true,
      previous_response_id: previous,
      conversation,
      store: body.store ?? true,
      temperature: 1,
      tool_choice: 'auto',
      tools: [],
      top_p: 1,
      usage: isBackground ? null : usage,
      metadata: {},
    }
    if (body.store !== false) {
      this.responses.set(id, response)
      this.inputs.set(id, [{ ...this.#message(''), role: 'user', content: [{ type: 'input_text', text: body.input }] }])
      if (held !== '') this.items.get(held)?.push(...(response.output as Json[]))
    }
    if (body.stream === true) return this.#stream(response, 0)
    return this.#json(response, '/v1/responses')
  }

  #stream(response: Json, after: number): Response {
    const frames = framesOf(response, this.says)
    if (response.status !== 'queued') return eventStream(frames.slice(after))
    // A response that runs tells the rest at its end, if its caller is still there.
    let isHeard = true
    const { responses, says } = this
    const stream = new ReadableStream<Uint8Array>({
      async start(controller) {
        for (const frame of frames.slice(after, 2)) controller.enqueue(frame)
        while (isHeard && responses.get(String(response.id))?.status === 'queued') await Bun.sleep(5)
        if (!isHeard) return
        for (const frame of framesOf(responses.get(String(response.id)) ?? response, says).slice(2)) {
          controller.enqueue(frame)
        }
        controller.close()
      },
      cancel() {
        isHeard = false
      },
    })
    return new Response(stream, { headers: { 'content-type': 'text/event-stream' } })
  }

  #response(method: string, id: string, part: string, url: URL): Response {
    const response = this.responses.get(id)
    if (response === undefined) return this.#missing(id)
    if (part === 'input_items') return this.#page(this.inputs.get(id) ?? [], url)
    if (part === 'cancel') {
      if (response.background !== true) return this.#error(400, 'Only a response in the background can be cancelled')
      this.end(id, 'cancelled')
      return this.#json(this.responses.get(id) ?? {}, url.pathname)
    }
    if (method === 'DELETE') {
      this.responses.delete(id)
      return this.#json({ id, object: 'response', deleted: true }, url.pathname)
    }
    const after = Number(url.searchParams.get('starting_after') ?? -1)
    return url.searchParams.get('stream') === 'true'
      ? this.#stream(response, after + 1)
      : this.#json(response, url.pathname)
  }

  #conversation(method: string, id: string, part: string, item: string, body: Json, url: URL): Response {
    if (id === '') {
      const made = this.#id('conv')
      this.conversations.set(made, { id: made, object: 'conversation', created_at: 1, metadata: body.metadata ?? {} })
      this.items.set(made, this.#numbered(body.items))
      return this.#json(this.conversations.get(made) ?? {}, url.pathname)
    }
    const conversation = this.conversations.get(id)
    const items = this.items.get(id)
    if (conversation === undefined || items === undefined) return this.#missing(id)
    if (part === '') {
      if (method === 'DELETE') {
        this.conversations.delete(id)
        return this.#json({ id, object: 'conversation.deleted', deleted: true }, url.pathname)
      }
      if (method === 'POST') conversation.metadata = body.metadata
      return this.#json(conversation, url.pathname)
    }
    if (item === '') {
      if (method === 'GET') return this.#page(items, url)
      const added = this.#numbered(body.items)
      items.push(...added)
      return this.#json(listOf(added), url.pathname)
    }
    const found = items.find((each) => each.id === item)
    if (found === undefined) return this.#missing(item)
    if (method === 'GET') return this.#json(found, url.pathname)
    items.splice(items.indexOf(found), 1)
    return this.#json(conversation, url.pathname)
  }

  #numbered(items: unknown): Json[] {
    const given: Json[] = Array.isArray(items) ? items : []
    return given.map((each) => ({ type: 'message', ...each, id: this.#id('msg') }))
  }

  #page(items: readonly Json[], url: URL): Response {
    const after = url.searchParams.get('after')
    const limit = Number(url.searchParams.get('limit') ?? 20)
    const start = after === null ? 0 : items.findIndex(({ id }) => id === after) + 1
    const page = items.slice(start, start + limit)
    return this.#json({ ...listOf(page), has_more: start + limit < items.length }, url.pathname)
  }

  #json(body: Json, path: string): Response {
    return Response.json(this.lies === null ? body : this.lies(body, path))
  }

  #missing = (id: string): Response => this.#error(404, `Nothing with id '${id}' found.`)

  #error = (status: number, message: string): Response =>
    Response.json({ error: { message, type: 'invalid_request_error', param: null, code: null } }, { status })
}

/** Every frame of a response, the ones with its text last. */
function framesOf(response: Json, says: string): Buffer[] {
  const [message] = response.output as Json[]
  const started = { ...response, status: 'in_progress', output: [], usage: null }
  const place = { output_index: 0, item_id: message?.id ?? 'msg', content_index: 0 }
  return eventFrames([
    { type: 'response.created', response: started },
    { type: 'response.in_progress', response: started },
    { type: 'response.output_item.added', output_index: 0, item: { ...message, content: [] } },
    { type: 'response.output_text.delta', ...place, delta: says, logprobs: [] },
    { type: 'response.output_item.done', output_index: 0, item: message },
    { type: 'response.completed', response },
  ])
    .toString()
    .split(/(?<=\n\n)/)
    .map((frame) => Buffer.from(frame))
}

const eventStream = (frames: readonly Buffer[]): Response =>
  new Response(new Blob([...frames]), { headers: { 'content-type': 'text/event-stream' } })

const listOf = (data: readonly Json[]): Json => ({
  object: 'list',
  data,
  first_id: data.at(0)?.id ?? null,
  last_id: data.at(-1)?.id ?? null,
  has_more: false,
})
