/**
 * Parts of an answer that need not be inspected: words that the languages themselves fix (roles, types, reasons), ids
 * in machine-made forms, and encoded bytes. A label with any other word in it is a text: a provider could put a
 * message there.
 */

/** The words of types, statuses, reasons, roles, formats and the like. */
const words: ReadonlySet<string> = new Set(
  `1h 24h 5m a access active added adaptive allowed annotation any api app application apply approval approximate argument arguments array
  assistant async audio auto automatic base64 bash batch batched blob block blocklist boolean browser bytes call calls
  cancelled canceled cache char character chat choice chunk citation citations click code command commentary compacting compaction completed completion completions
  computer concise connector container content control conversation create created creation csv custom data default deferred delta
  denied deny detail detailed developer diff disabled document docs docx done dot double drag dragging edit editor effort embedding embeddings
  enabled encrypted encoding end ended ephemeral error event exceeded exec execute execution expired failed false fetch
  file files filter final find flac flagged flex format from full function generate generated generating generation gif
  git grammar hidden high html http https image images in incomplete index input inspect int integer interpreter interpreting interrupted invalid item
  items jpeg jpg json key keypress language lark length limit link list local location log logprobs logs low made markdown max mcp media
  medium memory message messages method mime minimal model move mp3 mp4 mpeg msg multi name named namespace new none not null num number object
  ogg omitted on open operation opus original other output page panel parallel parameters part partial parts patch path pause paused pcm
  pcm16 pdf pending phase ping plain png policy pressed priority prompt progress queued raw read reason reasoning recitation redacted
  reference references regex refusal rejected removed replace request requests required requires resource response responses
  restart result results retrieval retry role rpc safety scale schema screenshot scroll search searching server service session shell
  sheet signature size source sources span speech standard start started state status step stop store str stream streaming string strict
  structured success succeeded summarized summary svg switch system table task term terminal text thinking thought tier time timeout title to token tokens tool tools
  transcript transcription true turn type undo unknown update updated uri url urls usage use user utf utterance uuid validated value vector
  verbosity video view vnd wait warning wav webm web webp word wrap write x xhigh xlsx xml yaml zip`.split(/\s+/),
)

/** Prefixes of ids, and words without a digit that ids contain. */
const prefixes: ReadonlySet<string> = new Set(
  `chatcmpl cmpl msg resp toolu srvtoolu mcptoolu fc rs ws ig ci cu ctc call lsc sh apc mcp mcpl mcpr mcpa req gen fp id item
  ev evt run thread asst file cntr container conv functions fn pmpt org proj sess ss cid tool ctco`.split(/\s+/),
)

const separators = /[^\p{L}\p{N}]+/u
/** Only words: an event's name has no numbers and no punctuation. */
const eventName = /^[a-z]+(?:[._][a-z]+)*$/

/** Whether a label contains only words of the languages. */
export const isKnownLabel = (value: string): boolean =>
  value.split(separators).every((word) => word === '' || /^\d{1,8}$/.test(word) || words.has(word.toLowerCase()))

/**
 * Whether an event's name contains only words of the languages, as its `type` does: clients select by it, and drop a
 * frame that has lost it.
 */
export const isEventName = (name: string): boolean => eventName.test(name) && isKnownLabel(name)

/**
 * Whether an id has a machine-made form: prefixes, and parts with a digit or of one or two letters. Every answer has
 * a new id, so it is checked without splitting it.
 */
function isMadeId(value: string): boolean {
  if (!/^[\w.:|/+=-]{0,512}$/.test(value)) return false
  let start = 0
  let hasDigit = false
  for (let at = 0; at <= value.length; at++) {
    const unit = at < value.length ? value.charCodeAt(at) : 0
    if (isDigit(unit)) hasDigit = true
    else if (!isLetter(unit)) {
      if (at - start > 2 && !hasDigit && !isIdWord(value.slice(start, at))) return false
      start = at + 1
      hasDigit = false
    }
  }
  return true
}

const isDigit = (unit: number): boolean => unit >= 0x30 && unit <= 0x39
/** ASCII letters, in either case. */
const isLetter = (unit: number): boolean => (unit | 0x20) >= 0x61 && (unit | 0x20) <= 0x7a
const isIdWord = (part: string): boolean => prefixes.has(part) || words.has(part)

/** A model has a name of parts (`gpt-4o`); policies that forbid a word do not mean the model's name. */
const isModelName = (value: string): boolean => /^(?=.*[\d/:.-])[\w.:/@+-]{0,200}$/.test(value)

const isEncoded = (value: string): boolean => /^[\w+/=.\r\n-]*$/.test(value.slice(0, 4096)) || isEncodedUrl(value)

/** `data:` with bytes in base64; it may contain plain words too. */
export const isEncodedUrl = (value: string): boolean => /^data:[\w.+/;=-]*;base64,[\w+/=-]*$/.test(value.slice(0, 4096))

const ids = [
  ...['id', 'call_id', 'tool_call_id', 'tool_use_id', 'approval_request_id', 'item_id', 'response_id', 'file_id'],
  ...['container_id', 'system_fingerprint', 'responseId'],
]
const labels = [
  ...['type', 'object', 'role', 'status', 'phase', 'index', 'media_type', 'mime_type', 'format', 'detail'],
  ...['finish_reason', 'stop_reason', 'native_finish_reason', 'service_tier', 'ttl'],
  ...['mimeType', 'finishReason', 'blockReason', 'modality', 'trafficType', 'serviceTier'],
]
/** Padding that some providers put into each frame, to hide the length of its text. */
export const paddingMember = 'obfuscation'

/** Whether padding holds no text, tested on its raw form in JSON; false for some padding that `saysNothing` accepts. */
export const saysNothingAsPadding = (inside: string): boolean => /^[A-Za-z0-9]*$/.test(inside)

/** Bytes in base64, signatures, and padding. */
const encoded = [
  ...['b64_json', 'partial_image_b64', 'file_data', 'signature', 'encrypted_content', 'encrypted_index'],
  ...['encrypted_stdout', 'thought_signature', 'thoughtSignature', paddingMember],
]

const labelled: ReadonlySet<string> = new Set([...ids, ...labels, ...encoded, 'model', 'modelVersion'])

/** Whether a member is one of those that hold no text while they have the expected form. */
export const isLabel = (member: string): boolean => labelled.has(member)

/** Objects whose member names come from the author of a tool or a prompt, such as a schema. */
const freelyNamed: ReadonlySet<string> = new Set([
  'properties',
  'patternProperties',
  '$defs',
  'definitions',
  'variables',
])

/** Whether an object's member names come from the author of a tool or a prompt. */
export const isFreelyNamed = (key: string): boolean => freelyNamed.has(key)

/**
 * Whether a member that is not a string is log probabilities, by its own name and its parent's. Other members are
 * inspected; log probabilities are removed from streams (`logprobs.ts`).
 */
export const isLogprobs = (key: string, parentKey: string): boolean => key === 'logprobs' && !freelyNamed.has(parentKey)

/** Member values already found to hold no text: the frames of a stream repeat them. */
interface Label {
  readonly form: (value: string) => boolean
  readonly known: Set<string>
}

const label = (form: Label['form']): Label => ({ form, known: new Set() })

const labelsByName = new Map<string, Label>([
  ...ids.map((name) => [name, label(isMadeId)] as const),
  ...labels.map((name) => [name, label(isKnownLabel)] as const),
  ...encoded.map((name) => [name, label(isEncoded)] as const),
  ['model', label(isModelName)],
  ['modelVersion', label(isModelName)],
  ['data', label(isEncoded)],
  ['result', label(isEncoded)],
])

const keptOfEach = 64
const longestKept = 128

/** Whether a member's string holds nothing that a policy should read. False for members that are not labels. */
export function saysNothing(member: string, value: string): boolean {
  const found = labelsByName.get(member)
  if (found === undefined) return false
  const { form, known } = found
  if (known.has(value)) return true
  if (!form(value)) return false
  if (value.length <= longestKept && known.size < keptOfEach) known.add(value)
  return true
}
