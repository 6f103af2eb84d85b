/**
 * Files and batches of the simulator, kept in memory: what one process of a gateway was sent, until it ends. A batch is
 * answered when it is first read after it was made; before that it can be cancelled. The oldest files go when the space
 * is used up.
 */
import { families, modelFamilies } from '../../languages/families.ts'
import { isObject, type JsonObject, parseObject } from '../../languages/reading/json-value.ts'
import { boundaryOf, formParts } from '../../lib/http/multipart.ts'
import type { UpstreamCall } from '../provider.ts'
import { refusal } from './text.ts'

/** Answers one request of a batch. */
export type AnswerLine = (call: UpstreamCall) => Promise<Response>

interface StoredFile {
  readonly object: JsonObject
  readonly content: Uint8Array
}

interface StoredBatch {
  object: JsonObject
  readonly inputId: string
}

/** All files of the simulator together. */
const spaceBytes = 64 * 1024 * 1024
const mostBatches = 1000

const files = new Map<string, StoredFile>()
const batches = new Map<string, StoredBatch>()
const decoder = new TextDecoder()
const encoder = new TextEncoder()

const now = (): number => Math.floor(Date.now() / 1000)
const idOf = (kind: 'file' | 'batch'): string => `${kind}-sim-${crypto.randomUUID().replaceAll('-', '')}`
const noSuch = (what: string): Response => refusal(404, 'not_found', `The simulator has no such ${what}`)

/** Whether the call is for files or batches. */
export const isBatchCall = ({ endpoint }: UpstreamCall): boolean => /^\/(?:files|batches)\b/.test(endpoint?.path ?? '')

export async function answerBatchCall(call: UpstreamCall, answer: AnswerLine): Promise<Response> {
  const { method, path } = call.endpoint ?? { method: 'GET', path: '' }
  const [, kind, id = '', action] = path.split('/')
  if (kind === 'files') return id === '' ? addFile(call) : answerFile(id, method, action)
  if (id === '') return addBatch(call)
  const batch = batches.get(id)
  if (batch === undefined) return noSuch('batch')
  if (action === 'cancel') cancel(batch)
  else await finish(batch, call, answer)
  return Response.json(batch.object)
}

function addFile({ body, contentType }: UpstreamCall): Response {
  const form = formParts(body, boundaryOf(contentType) ?? '')
  const part = form.parts.find(({ filename }) => filename !== null)
  if (part === undefined) return refusal(400, 'missing_file', 'The form has no file')
  return Response.json(keepFile(body.slice(...part.span), part.filename ?? 'file', 'batch'))
}

function keepFile(content: Uint8Array, filename: string, purpose: string): JsonObject {
  const object = {
    ...{ id: idOf('file'), object: 'file', bytes: content.length, created_at: now(), filename, purpose },
    status: 'processed',
  }
  files.set(object.id, { object, content })
  let kept = 0
  for (const [id, { content: bytes }] of [...files].reverse()) {
    kept += bytes.length
    if (kept > spaceBytes) files.delete(id)
  }
  return object
}

function answerFile(id: string, method: string, action: string | undefined): Response {
  const file = files.get(id)
  if (file === undefined) return noSuch('file')
  if (method === 'DELETE') {
    files.delete(id)
    return Response.json({ id, object: 'file', deleted: true })
  }
  if (action !== 'content') return Response.json(file.object)
  return new Response(file.content.slice(), { headers: { 'content-type': 'application/octet-stream' } })
}

function addBatch({ body }: UpstreamCall): Response {
  const asked = parseObject(decoder.decode(body)) ?? {}
  const { input_file_id: inputId, endpoint, completion_window: window, metadata = null } = asked
  const input = typeof inputId === 'string' ? files.get(inputId) : undefined
  if (typeof inputId !== 'string' || input === undefined) return noSuch('file')
  if (window !== '24h') return refusal(400, 'invalid_value', 'completion_window must be 24h')
  const total = linesOf(input).length
  const object = {
    ...{ id: idOf('batch'), object: 'batch', endpoint, errors: null, input_file_id: inputId },
    ...{ completion_window: window, status: 'in_progress', output_file_id: null, error_file_id: null },
    ...{ created_at: now(), in_progress_at: now(), expires_at: now() + 86_400, completed_at: null, metadata },
    request_counts: { total, completed: 0, failed: 0 },
  }
  batches.set(object.id, { object, inputId })
  for (const oldest of batches.keys()) {
    if (batches.size <= mostBatches) break
    batches.delete(oldest)
  }
  return Response.json(object)
}

const linesOf = ({ content }: StoredFile): string[] => decoder.decode(content).split('\n').filter(Boolean)

function cancel(batch: StoredBatch): void {
  if (batch.object.status === 'in_progress') {
    batch.object = { ...batch.object, status: 'cancelled', cancelled_at: now() }
  }
}

async function finish(batch: StoredBatch, call: UpstreamCall, answer: AnswerLine): Promise<void> {
  const input = files.get(batch.inputId)
  if (batch.object.status !== 'in_progress') return
  if (input === undefined) {
    batch.object = { ...batch.object, status: 'failed', failed_at: now() }
    return
  }
  const good: string[] = []
  const bad: string[] = []
  for (const text of linesOf(input)) {
    const { custom_id, url, body } = parseObject(text) ?? {}
    const response = await answerOne(call, answer, url, body)
    const ok = response.status_code < 400
    const line = JSON.stringify({
      id: `${batch.object.id}-${good.length + bad.length}`,
      custom_id,
      response,
      error: null,
    })
    if (ok) good.push(line)
    else bad.push(line)
  }
  const kept = (lines: readonly string[], name: string): unknown =>
    lines.length === 0 ? null : keepFile(encoder.encode(`${lines.join('\n')}\n`), name, 'batch_output').id
  batch.object = {
    ...batch.object,
    ...{ status: 'completed', completed_at: now() },
    request_counts: { total: good.length + bad.length, completed: good.length, failed: bad.length },
    output_file_id: kept(good, 'output.jsonl'),
    error_file_id: kept(bad, 'error.jsonl'),
  }
}

async function answerOne(call: UpstreamCall, answer: AnswerLine, url: unknown, body: unknown) {
  const family = modelFamilies.find((each) => families[each].path === url)
  const { endpoint: _endpoint, ...rest } = call
  const response =
    family === undefined || !isObject(body)
      ? noSuch('path')
      : await answer({
          ...rest,
          ...{ family, model: String(body.model), stream: false, contentType: 'application/json' },
          body: encoder.encode(JSON.stringify(body)),
        })
  return { status_code: response.status, request_id: 'simulated', body: parseObject(await response.text()) }
}
