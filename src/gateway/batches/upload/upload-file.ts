/**
 * `POST /v1/files`: takes a file of purpose `batch`, line by line as it arrives, and sends it on once all lines have
 * passed (gateway/batches/README.md). Memory holds one line, whatever the size of the file.
 */
import { Failure } from '../../../failure.ts'
import { nothingGenerated } from '../../../languages/responses/stored.ts'
import { FormReader } from '../../../lib/http/form-reader.ts'
import { type Line, LineReader } from '../../../lib/http/line-reader.ts'
import { boundaryOf } from '../../../lib/http/multipart.ts'
import { yieldToEventLoop } from '../../../lib/yield-to-event-loop.ts'
import { openRecord } from '../../accounting/open-record.ts'
import { checkLive } from '../../admission/authenticate.ts'
import { takeRates } from '../../admission/rate-limit.ts'
import type { Gateway } from '../../context.ts'
import { type Exchange, required } from '../../exchange.ts'
import { liftIdleTimeout } from '../../idle-timeout.ts'
import { checkRequestId } from '../../request-id.ts'
import { newStoredState } from '../../stored/stored-state.ts'
import { dispatch } from '../../upstream/fallback.ts'
import type { CheckedLines } from '../file-place.ts'
import { newFileEdits } from '../object-edits.ts'
import { type CheckedLine, checkLine } from './check-line.ts'
import { rulesDigest } from './rules-digest.ts'
import { Spool } from './spool.ts'

/** Files that one worker reads at once, of all and of one owner. */
const mostAtOnce = 8
const mostOfOneOwner = 2
/** A field beside the file, such as `expires_after[seconds]`. */
const longestField = 256
const passedFields: ReadonlySet<string> = new Set(['expires_after[anchor]', 'expires_after[seconds]'])
const longestName = 120
/** Lines are checked for this long, in milliseconds, before other requests have their turn. */
const turnMilliseconds = 5

/** The owners of the files that each gateway reads now. */
const reading = new WeakMap<Gateway, string[]>()

/** Reads and checks the file, and sends it to the provider of its model. */
export async function uploadFile(exchange: Exchange, gateway: Gateway): Promise<void> {
  checkRequestId(exchange)
  const boundary = boundaryOf(exchange.contentType)
  if (boundary === null) {
    throw new Failure('unsupported_media_type', { message: 'Send the file as multipart/form-data with its boundary' })
  }
  const encoding = exchange.request.headers.get('content-encoding') ?? 'identity'
  if (encoding.trim().toLowerCase() !== 'identity') {
    throw new Failure('unsupported_media_type', { message: 'Send the file without a Content-Encoding' })
  }
  const leave = enter(exchange, gateway)
  try {
    await exchange.memory.admit(gateway.settings.body_limit_bytes)
    await gateway.prices.load()
    const spool = await Spool.create(gateway.spoolDirectory, exchange.id)
    try {
      await new Upload(exchange, gateway, spool).read(new FormReader(boundary))
      await sendOn(exchange, gateway)
    } finally {
      await spool.remove()
    }
  } finally {
    leave()
  }
}

/** Throws `uploads_full` while as many files are read as may be. */
function enter({ token }: Exchange, gateway: Gateway): () => void {
  const { ownerKind, ownerId } = required(token)
  const owner = `${ownerKind}/${ownerId}`
  const owners = reading.get(gateway) ?? []
  reading.set(gateway, owners)
  if (owners.length >= mostAtOnce || owners.filter((each) => each === owner).length >= mostOfOneOwner) {
    throw new Failure('uploads_full')
  }
  owners.push(owner)
  return () => owners.splice(owners.indexOf(owner), 1)
}

async function sendOn(exchange: Exchange, gateway: Gateway): Promise<void> {
  await takeRates(exchange, gateway)
  checkLive(exchange, gateway)
  await openRecord(exchange, gateway)
  // What the provider answers describes the file and holds no text of a model.
  exchange.chain = null
  await dispatch(exchange, gateway)
}

/** One file on its way to the disk. */
class Upload {
  readonly #exchange: Exchange
  readonly #gateway: Gateway
  readonly #spool: Spool
  readonly #lines: LineReader
  /** Hashes of the ids of all lines. */
  readonly #ids = new Set<bigint | number>()
  readonly #fields = new Map<string, string>()
  #field: { name: string; pieces: Uint8Array[] } | null = null
  #inFile = false
  #hasFile = false
  #number = 0
  #bytes = 0
  #first: CheckedLine | null = null
  #bound: number | null = 0
  #turnEnds: number

  constructor(exchange: Exchange, gateway: Gateway, spool: Spool) {
    this.#exchange = exchange
    this.#gateway = gateway
    this.#spool = spool
    this.#lines = new LineReader(gateway.settings.body_limit_bytes)
    this.#turnEnds = gateway.clock.monotonic() + turnMilliseconds
  }

  async read(form: FormReader): Promise<void> {
    const exchange = this.#exchange
    const { request } = exchange
    liftIdleTimeout(exchange)
    const reader = (request.body ?? new Blob([]).stream()).getReader()
    // A cancelled read ends.
    const end = () => void reader.cancel().catch(() => undefined)
    exchange.onCut = end
    try {
      for (;;) {
        this.#awaitMore()
        const { done, value } = await this.#next(reader)
        if (exchange.cut !== null) throw exchange.cut.failure
        if (done) break
        exchange.bodyDeadline = null
        await this.#take(form, value)
      }
    } finally {
      exchange.onCut = null
      exchange.bodyDeadline = null
      end()
    }
    if (!form.isWhole) throw invalidForm('it does not end with its closing boundary')
    await this.#end()
  }

  #awaitMore(): void {
    const { clock, settings } = this.#gateway
    this.#exchange.bodyDeadline = clock.monotonic() + 1000 * settings.body_timeout_seconds
  }

  async #next(reader: { read(): Promise<{ done: boolean; value?: Uint8Array }> }) {
    try {
      const { done, value } = await reader.read()
      return { done, value: value ?? new Uint8Array(0) }
    } catch (thrown) {
      throw new Failure('client_left', { cause: thrown })
    }
  }

  async #take(form: FormReader, bytes: Uint8Array): Promise<void> {
    this.#bytes += bytes.length
    const { batch_file_limit_bytes: limit } = this.#gateway.settings
    if (this.#bytes > limit) {
      throw new Failure('request_too_large', { message: `The file is larger than the limit of ${limit} bytes` })
    }
    try {
      for (const piece of form.push(bytes)) {
        if ('part' in piece) await this.#beginPart(piece.part)
        else if (this.#inFile) for (const line of this.#lines.push(piece.content)) await this.#line(line)
        else this.#addToField(piece.content)
      }
    } catch (thrown) {
      if (thrown instanceof RangeError) throw invalidForm(thrown.message)
      throw thrown
    }
  }

  async #beginPart({ name, filename }: { name: string; filename: string | null }): Promise<void> {
    await this.#endPart()
    if (name !== 'file' || filename === null) {
      if (filename !== null || name === 'file') throw invalidForm('its only file is file')
      this.#field = { name, pieces: [] }
      return
    }
    if (this.#hasFile) throw invalidForm('it has file twice')
    this.#hasFile = true
    this.#inFile = true
    await this.#spool.addField('purpose', 'batch')
    await this.#spool.beginFile(nameOf(filename))
  }

  async #endPart(): Promise<void> {
    if (this.#inFile) {
      for (const line of this.#lines.end()) await this.#line(line)
      await this.#spool.endFile()
    }
    this.#inFile = false
    if (this.#field !== null) {
      const { name, pieces } = this.#field
      if (this.#fields.has(name)) throw invalidForm(`it names ${name} twice`)
      this.#fields.set(name, Buffer.concat(pieces).toString())
    }
    this.#field = null
  }

  #addToField(content: Uint8Array): void {
    this.#field?.pieces.push(content.slice())
    const length = this.#field?.pieces.reduce((sum, piece) => sum + piece.length, 0) ?? 0
    if (length > longestField) throw invalidForm(`a field is longer than ${longestField} bytes`)
  }

  async #line(line: Line): Promise<void> {
    const gateway = this.#gateway
    this.#number += 1
    if (line.bytes.every((byte) => byte === 0x20 || byte === 0x09)) return
    const { batch_line_limit: limit } = gateway.settings
    if (this.#ids.size >= limit) {
      throw new Failure('request_too_large', { message: `The file has more lines than the limit of ${limit}` })
    }
    const checked = await checkLine(this.#exchange, gateway, line, this.#number)
    this.#checkAmong(checked)
    this.#bound = this.#bound === null || checked.bound === null ? null : this.#bound + checked.bound
    await this.#spool.addLine(checked.sent)
    if (this.#exchange.cut !== null) throw this.#exchange.cut.failure
    if (gateway.clock.monotonic() < this.#turnEnds) return
    await yieldToEventLoop()
    this.#turnEnds = gateway.clock.monotonic() + turnMilliseconds
  }

  /** Throws for a line that does not fit to those before it. */
  #checkAmong(checked: CheckedLine): void {
    const first = this.#first ?? checked
    this.#first = first
    const hash = Bun.hash(checked.customId)
    const wrong =
      checked.family !== first.family
        ? 'url differs from that of the first line: a batch has one'
        : checked.model.id !== first.model.id || checked.model.provider.id !== first.model.provider.id
          ? 'the model differs from that of the first line: a batch has one'
          : this.#ids.has(hash)
            ? 'custom_id is that of an earlier line'
            : null
    if (wrong !== null) {
      throw new Failure('invalid_parameter', { message: `Line ${this.#number}: ${wrong}`, param: 'file' })
    }
    this.#ids.add(hash)
  }

  /** All has arrived and passed: the exchange becomes that of the call that sends it. */
  async #end(): Promise<void> {
    await this.#endPart()
    const exchange = this.#exchange
    const purpose = this.#fields.get('purpose')
    if (purpose !== 'batch') {
      const message = 'purpose must be batch: a gateway with policies passes no files that it cannot read'
      throw new Failure('invalid_parameter', { message, param: 'purpose' })
    }
    const first = this.#first
    if (first === null) {
      throw new Failure('invalid_parameter', { message: 'The file has no requests: write one a line', param: 'file' })
    }
    for (const [name, value] of this.#fields) {
      if (name === 'purpose') continue
      if (!passedFields.has(name) || /[\r\n]/.test(value)) {
        throw new Failure('unknown_parameter', { message: 'The form has a field that this route does not know' })
      }
      await this.#spool.addField(name, value)
    }
    const body = await this.#spool.whole()
    const { model, family } = first
    exchange.model = model
    exchange.paths = [model]
    exchange.chain = first.exchange.chain
    exchange.facts = { ...nothingGenerated, model: model.upstreamModel }
    exchange.parsed = {}
    exchange.contentType = this.#spool.contentType
    const terms = this.#gateway.prices.terms(model, this.#gateway.clock.now())
    const rules = rulesDigest(required(first.exchange.chain), terms)
    const checked: CheckedLines = { family, lines: this.#ids.size, bound: this.#bound, rules }
    exchange.stored = {
      ...newStoredState(),
      call: {
        ...{ method: 'POST', path: '/files', gives: 'file', answersWith: null, body },
        editsOf: newFileEdits(exchange, this.#gateway, checked),
      },
    }
  }
}

const invalidForm = (problem: string): Failure =>
  new Failure('invalid_form', { message: `The request body is not a valid form: ${problem}` })

/** What the provider shows as the name of the file. */
const nameOf = (filename: string): string => {
  const name = filename.replace(/[^\w.-]/g, '_').slice(-longestName)
  return name.endsWith('.jsonl') ? name : `${name}.jsonl`
}
