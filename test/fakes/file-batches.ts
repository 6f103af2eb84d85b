/** A provider of files and batches as OpenAI has them, whose batches end when and how a test says. */

export interface FakeBatch {
  id: string
  status: string
  input_file_id: string
  output_file_id: string | null
  error_file_id: string | null
  [member: string]: unknown
}

interface RequestLine {
  custom_id: string
  url: string
  body: Record<string, unknown>
}

const json = (value: unknown, status = 200) => Response.json(value, { status })
const noSuch = (id: string) => json({ error: { message: `No such object: ${id}`, type: 'invalid_request_error' } }, 404)

/** An answer of chat in a line of output; `members` replace those of the line. */
export const outputLine = (customId: string, text: string, members: Record<string, unknown> = {}): string =>
  JSON.stringify({
    id: `batch_req_${customId}`,
    custom_id: customId,
    response: { status_code: 200, request_id: 'r', body: completionOf(text) },
    error: null,
    ...members,
  })

/** A chat completion of 10 tokens in and 5 out. */
export const completionOf = (
  text: string,
  usage: unknown = { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15 },
) => ({
  id: 'chatcmpl-1',
  object: 'chat.completion',
  created: 1,
  model: 'gpt-test',
  choices: [{ index: 0, message: { role: 'assistant', content: text }, finish_reason: 'stop' }],
  usage,
})

export class FileBatches {
  readonly files = new Map<string, string>()
  readonly batches = new Map<string, FakeBatch>()
  /** What it does to a request that makes a batch, in place of making one. */
  onCreate: (() => Response | Promise<Response> | null) | null = null
  #made = 0

  /** The requests of a file. */
  lines(fileId: string): RequestLine[] {
    return (this.files.get(fileId) ?? '')
      .split('\n')
      .filter(Boolean)
      .map((line) => JSON.parse(line))
  }

  /** Ends a batch with these lines of output and of errors. */
  end(id: string, members: Partial<FakeBatch> & { lines?: readonly string[]; errors?: readonly string[] } = {}): void {
    const batch = this.batches.get(id)
    if (batch === undefined) throw new Error('There is no such batch')
    const { lines = [], errors = [], ...rest } = members
    batch.status = 'completed'
    if (lines.length > 0) batch.output_file_id = this.#keep(lines)
    if (errors.length > 0) batch.error_file_id = this.#keep(errors)
    batch.request_counts = { total: lines.length + errors.length, completed: lines.length, failed: errors.length }
    Object.assign(batch, rest)
  }

  async answer({ method, url, headers }: Request, body: string): Promise<Response> {
    const [, , kind, id = '', action] = new URL(url).pathname.split('/')
    if (kind === 'files') {
      if (id === '') return json(this.#add(body, headers.get('content-type') ?? ''))
      return this.#file(id, method, action)
    }
    if (id === '') return (await this.onCreate?.()) ?? json(this.#create(JSON.parse(body)))
    const batch = this.batches.get(id)
    if (batch === undefined) return noSuch(id)
    if (action === 'cancel') batch.status = 'cancelling'
    return json(batch)
  }

  #file(id: string, method: string, action: string | undefined): Response {
    const content = this.files.get(id)
    if (content === undefined) return noSuch(id)
    if (method === 'DELETE') {
      this.files.delete(id)
      return json({ id, object: 'file', deleted: true })
    }
    if (action === 'content') return new Response(content, { headers: { 'content-type': 'application/octet-stream' } })
    return json({
      id,
      object: 'file',
      bytes: content.length,
      created_at: 1,
      filename: 'requests.jsonl',
      purpose: 'batch',
    })
  }

  #add(body: string, contentType: string) {
    const boundary = /boundary=(.*)$/.exec(contentType)?.[1] ?? ''
    const part = body.split(`--${boundary}`).find((each) => each.includes('filename=')) ?? ''
    const content = part.slice(part.indexOf('\r\n\r\n') + 4, part.lastIndexOf('\r\n'))
    const id = this.#keep([content.trimEnd()])
    return { id, object: 'file', bytes: content.length, created_at: 1, filename: 'requests.jsonl', purpose: 'batch' }
  }

  #keep(lines: readonly string[]): string {
    const id = `file-${++this.#made}`
    this.files.set(id, `${lines.join('\n')}\n`)
    return id
  }

  #create(asked: Record<string, unknown>): FakeBatch {
    const batch: FakeBatch = {
      ...asked,
      ...{ id: `batch_${++this.#made}`, object: 'batch', status: 'in_progress', created_at: 1 },
      ...{ input_file_id: String(asked.input_file_id), output_file_id: null, error_file_id: null },
    }
    this.batches.set(batch.id, batch)
    return batch
  }
}
