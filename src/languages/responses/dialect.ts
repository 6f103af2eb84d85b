/**
 * The responses language of `POST /v1/responses`: items in, items out, JSON or SSE. A stream's every frame has a type
 * and a number, and ends with `response.completed`, `response.incomplete` or `response.failed`.
 */
import { envelope, Failure } from '../../failure.ts'
import { type Dialect, estimateTokens } from '../dialect.ts'
import { unforeseenLength } from '../reading/frames/unknown-frames.ts'
import { hasListedPrice, unboundedTool } from '../reading/hosted-tools.ts'
import { isGiven, isObject, type JsonObject, objectsOf, textOf } from '../reading/json-value.ts'
import { checkResponseFormat, checkTextFormat } from '../reading/output-format.ts'
import { fieldReader, modelOf, reachesBeyond, wholeNumber } from '../reading/request-fields.ts'
import { tokenMember } from '../reading/request-only.ts'
import { dropLogprobs } from '../reading/texts/logprobs.ts'
import { addMember, textReader } from '../reading/texts/request-texts.ts'
import { spelledTexts } from '../reading/texts/text-members.ts'
import type { TextSlot } from '../reading/texts/text-slot.ts'
import { FoundSlot, slotsOf, textLength } from '../reading/texts/texts.ts'
import { topLevelSlots, topLevelTexts } from '../reading/texts/top-level-texts.ts'
import { generatedLength, ownResponse, readUsage, waiting } from './answer.ts'
import { responsesMembers } from './members.ts'
import { offeredTools } from './offered-tools.ts'
import { responsesReader } from './stream-reader.ts'
import { echoedTexts, isList, itemHolders, itemTexts, readApart, roleOf } from './texts.ts'

const readFields = fieldReader(responsesMembers)

export const responses: Dialect = {
  family: 'responses',

  read(body) {
    const model = modelOf(body)
    checkFormat(body)
    return {
      model,
      ...readFields(body),
      inputEstimate: estimateTokens(textLength(body.instructions) + textLength(body.input)),
      beyondBody: references.some((name) => isGiven(body[name])) || reachesBeyond(body.input),
      ...toolFacts(body),
    }
  },

  limitTools,

  requestText: textReader(responsesMembers, { input: addInput }),
  tokenInput: (body) => tokenMember(body),

  readAnswer: (body) =>
    isObject(body)
      ? {
          usage: readUsage(body),
          textLength: Array.isArray(body.output) ? generatedLength(body.output) : unforeseenLength(body),
        }
      : { usage: null, textLength: 0 },

  answerText: (body, asked) =>
    isObject(body)
      ? [
          ...objectsOf(body.output).flatMap(itemSlots),
          ...topLevelTexts(body, 'output', exceptOutput),
          ...topLevelSlots(echoedTexts(body, asked), 'output'),
        ]
      : [],

  reader: (start) => responsesReader(start),
  errorBody: envelope,
  providerError: () => null,
  escalation: ({ model }, verdictan, exchangeId, textOnly) => ({
    ...ownResponse(model, exchangeId),
    ...waiting(verdictan, exchangeId, textOnly),
  }),
}

/** Members that name input which the body does not hold. */
const references = ['previous_response_id', 'conversation', 'prompt']
/** Tools that the caller runs; all others are the provider's, at its price. */
const runByCaller = new Set([
  'function',
  'custom',
  'namespace',
  'local_shell',
  'apply_patch',
  'computer',
  'computer_use_preview',
])

const isHosted = ({ type }: JsonObject): boolean => !runByCaller.has(textOf(type) ?? '')

/** The provider's own tools; `max_tool_calls` is their maximum of uses together. */
function toolFacts(body: Readonly<JsonObject>) {
  const uses = wholeNumber(body, 'max_tool_calls', 0)
  const tools = offeredTools(body)
  const index = tools.findIndex(isHosted)
  if (index < 0) return { unbounded: null }
  if (uses !== null) return { unbounded: null, toolUses: uses }
  const named = tools.findIndex((tool) => isHosted(tool) && !hasListedPrice(tool))
  const at = named < 0 ? index : named
  return unboundedTool(textOf(tools[at]?.type) ?? '', at, 'set max_tool_calls')
}

function limitTools(body: JsonObject, uses: number): readonly string[] {
  const hosted = offeredTools(body).filter(isHosted)
  if (isGiven(body.max_tool_calls) || hosted.length === 0 || !hosted.every(hasListedPrice)) return []
  body.max_tool_calls = uses
  return ['max_tool_calls']
}

/**
 * `response_format` is `text.format` by another name: both may be given only where they say the same
 * (gateway/README.md).
 */
function checkFormat({ response_format: format, text }: Readonly<JsonObject>): void {
  if (isGiven(text) && !isObject(text)) {
    throw new Failure('invalid_parameter', { param: 'text', message: 'text must be an object' })
  }
  const other = isObject(text) ? text.format : undefined
  checkResponseFormat(format)
  checkTextFormat(other)
  if (!isObject(format) || !isGiven(other) || Bun.deepEquals(textFormatOf(format), other)) return
  const message = 'response_format and text.format differ: send one of them'
  throw new Failure('invalid_parameter', { param: 'response_format', message })
}

/** What `response_format` is as `text.format`: the same, with the schema's members beside the type. */
export function textFormatOf(format: Readonly<JsonObject>): JsonObject {
  const { json_schema: schema, ...rest } = format
  return isObject(schema) ? { ...rest, ...schema } : { ...rest }
}

/** Adds the texts of the input: its items, or the text that stands for one, or whatever else. */
export function addInput(slots: TextSlot[], body: JsonObject): void {
  const items = objectsOf(body.input)
  for (const item of items) {
    const owner = { member: 'input', role: roleOf(item), ...(!isList(item) && { message: item }) }
    for (const found of itemTexts(item, true)) slots.push(new FoundSlot(found, owner))
  }
  if (items !== body.input) addMember(slots, body, 'input', { role: 'user', listed: true })
}

const itemSlots = (item: JsonObject): TextSlot[] =>
  slotsOf([...itemTexts(item), ...itemHolders(item).flatMap(spelledTexts)], {
    member: 'output',
    role: 'assistant',
    onReplace: () => void dropLogprobs(item),
  })

const exceptOutput: ReadonlySet<string> = new Set([...readApart].filter((member) => member !== 'output'))
