/**
 * Counts the text of a request with the tokenizer of its model, so that the count is an upper bound of the input:
 *
 * 1. Every key and value of the body counts, decoded from JSON, including fields that the model never reads. Two tokens
 *    are added for the punctuation around each: more than the layouts of providers need for texts, tools and schemas.
 *    The allowances for a request, its messages and its tools come on top (`bound.ts`).
 * 2. A long text is counted in pieces that end before a space. Otherwise a long run without a space takes quadratic
 *    time (20 s for 100 KB).
 * 3. A share of 2 % is added: a provider may join texts that were counted apart, and split them elsewhere.
 * 4. A body with anything but text has no such count: pictures, audio, files, encrypted reasoning, unknown parts.
 */
export type CountText = (text: string) => number

/** A tokenizer, by the name its vocabulary has. */
export type Encoding = 'o200k_base' | 'cl100k_base'

const punctuation = 2
const margin = 1.02
const pieceLength = 512

/** Parts of a conversation that hold text only. */
const textTypes: ReadonlySet<string> = new Set([
  'text',
  'input_text',
  'output_text',
  'refusal',
  'message',
  'function',
  'function_call',
  'function_call_output',
  'custom',
  'custom_tool_call',
  'custom_tool_call_output',
  'tool_use',
  'tool_result',
])
const conversation: ReadonlySet<string> = new Set(['messages', 'input', 'system'])

/** Families of models whose vocabulary OpenAI has published (tiktoken's `model.py`); names with a later version too. */
const families: readonly (readonly [RegExp, Encoding])[] = [
  [/^(gpt-4o|gpt-4\.1|gpt-4\.5|gpt-5|chatgpt-4o|o1|o3|o4-mini)(?![a-z0-9])/, 'o200k_base'],
  [/^gpt-(4|3\.5)(?![a-z0-9.])/, 'cl100k_base'],
  [/^text-embedding-(3|ada)(?![a-z0-9])/, 'cl100k_base'],
]
/** Their input is more than text, or more than the body holds. */
const otherInput = /audio|realtime|search|image|transcribe|tts|vision|research/

/**
 * The tokenizer of a model; null if no public one is known. Anthropic and Google publish none, and an Azure deployment
 * has a name that its operator chose.
 */
export function encodingOf(providerKind: string, upstreamModel: string): Encoding | null {
  if (providerKind !== 'openai') return null
  const name = upstreamModel.replace(/^openai\//, '').replace(/^ft:/, '')
  if (otherInput.test(name)) return null
  return families.find(([family]) => family.test(name))?.[1] ?? null
}

/** The tokens of a parsed body; null where it holds more than text. */
export function tokensOfBody(body: unknown, countText: CountText): number | null {
  let tokens = 0
  const add = (text: string) => {
    tokens += punctuation
    for (const piece of pieces(text)) tokens += countText(piece)
  }
  const walk = (value: unknown, mustBeText: boolean): boolean => {
    if (Array.isArray(value)) return value.every((each) => walk(each, mustBeText))
    if (typeof value !== 'object' || value === null) {
      add(String(value))
      return true
    }
    if (mustBeText && 'type' in value && (typeof value.type !== 'string' || !textTypes.has(value.type))) return false
    return Object.entries(value).every(([key, member]) => {
      add(key)
      return walk(member, mustBeText)
    })
  }
  if (typeof body !== 'object' || body === null) return null
  for (const [key, member] of Object.entries(body)) {
    add(key)
    if (!walk(member, conversation.has(key))) return null
  }
  return Math.ceil(tokens * margin)
}

function* pieces(text: string): Generator<string> {
  let start = 0
  while (text.length - start > pieceLength) {
    let end = text.lastIndexOf(' ', start + pieceLength)
    if (end <= start) {
      end = start + pieceLength
      // A surrogate pair stays together.
      if (/[\uD800-\uDBFF]/.test(text.charAt(end - 1))) end -= 1
    }
    yield text.slice(start, end)
    start = end
  }
  yield text.slice(start)
}
