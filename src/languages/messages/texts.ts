/** What the gateway reads of the messages language: its blocks, its usage, and the tools that the provider runs. */
import { type Verdictan, waitingWords } from '../../failure.ts'
import type { Usage } from '../dialect.ts'
import { countOf, isObject, type JsonObject, objectsOf, textOf } from '../reading/json-value.ts'
import { plainId } from '../reading/request-fields.ts'
import { addMember } from '../reading/texts/request-texts.ts'
import { alteredSignature } from '../reading/texts/signed-reasoning.ts'
import type { Holder } from '../reading/texts/text-members.ts'
import type { TextKind, TextSlot } from '../reading/texts/text-slot.ts'
import { FoundSlot, type FoundText, slotsOf, textsIn, textsOfMember, whereAltered } from '../reading/texts/texts.ts'
import { spokenNames } from './members.ts'

/** The text members of a content block, by its type. */
export function kindOfBlock(type: unknown): TextKind {
  const name = textOf(type) ?? ''
  if (name.endsWith('tool_result')) return 'tool_result'
  return name.includes('thinking') ? 'reasoning' : 'content'
}

/** `files`: texts in base64 are read too. */
export function blockTexts(block: JsonObject, files = false): FoundText[] {
  const texts = textsIn(block, { kind: kindOfBlock(block.type), files })
  const signature = textOf(block.signature)
  if (block.type !== 'thinking' || !signature) return texts
  const unsign = () => {
    block.signature = alteredSignature(signature)
  }
  return texts.map((found) => (found.place === 'thinking' ? whereAltered(found, unsign) : found))
}

/** The role of a content's texts. */
interface Owner {
  member: string
  role: string | null
}

/** Adds the texts of a `content`: blocks, a string, or a value of another type. */
export function addContent(slots: TextSlot[], holder: JsonObject, key: string, owner: Owner): void {
  const content = holder[key]
  const blocks = objectsOf(content)
  for (const block of blocks) {
    const message = kindOfBlock(block.type) === 'tool_result' ? block : holder
    const spoken = { ...owner, role: roleOfBlock(block, owner.role), message }
    for (const found of blockTexts(block, true)) slots.push(new FoundSlot(found, spoken))
  }
  if (blocks === content) return
  for (const found of textsOfMember(holder, key, { files: true, listed: key })) slots.push(new FoundSlot(found, owner))
}

/** Adds the texts of a request's messages; the content of each message comes first. */
export function addMessages(slots: TextSlot[], body: JsonObject): void {
  const messages = objectsOf(body.messages)
  for (const message of messages) {
    const owner = { member: 'messages', role: textOf(message.role) }
    addContent(slots, message, 'content', owner)
    const beside = textsIn(message, { files: true, except: contentOnly })
    for (const found of beside) slots.push(new FoundSlot(found, owner))
  }
  if (messages !== body.messages) addMember(slots, body, 'messages', { role: null, listed: true })
}

const contentOnly: ReadonlySet<string> = new Set(['content'])

/** The texts of a list of blocks. */
export const blockSlots = (content: unknown, member: string, role: string | null): TextSlot[] =>
  objectsOf(content).flatMap((block) => slotsOf(blockTexts(block, true), { member, role: roleOfBlock(block, role) }))

/** The results of tools come in the user's turn. */
const roleOfBlock = (block: JsonObject, role: string | null): string | null =>
  kindOfBlock(block.type) === 'tool_result' ? 'tool' : role

/** The members that hold the texts of a content block, or of a delta of one. */
export const blockHolder = (of: JsonObject): Holder => ({ of, members: spokenNames })

/** Characters of the generated text in content blocks. */
export function generatedLength(content: unknown): number {
  let length = 0
  for (const { text, thinking, input } of objectsOf(content)) {
    length += (textOf(text) ?? textOf(thinking) ?? '').length
    if (isObject(input)) length += JSON.stringify(input).length
  }
  return length
}

/** Characters that a delta adds: text, thinking, or a tool's input. */
export const deltaLength = (delta: JsonObject): number =>
  (textOf(delta.text) ?? textOf(delta.thinking) ?? textOf(delta.partial_json) ?? '').length

/** The text of a text delta. Text that is held back never affects a signature here. */
export const textAlone = (type: string, { delta }: JsonObject): string | null =>
  type === 'content_block_delta' && isObject(delta) && delta.type === 'text_delta' ? textOf(delta.text) : null

/** Counts as one object reports them; input includes cache reads and writes. */
export function readUsage(usage: unknown): Usage | null {
  if (!isObject(usage)) return null
  const counts = [usage.input_tokens, usage.cache_read_input_tokens, usage.cache_creation_input_tokens].map(countOf)
  const [uncached, read, created] = counts
  const details = usage.output_tokens_details
  const told: Usage = {
    inputTokens: uncached === null ? null : counts.reduce<number>((sum, count) => sum + (count ?? 0), 0),
    outputTokens: countOf(usage.output_tokens),
    cachedInputTokens: read ?? null,
    cacheWriteTokens: created ?? null,
    reasoningTokens: isObject(details) ? countOf(details.thinking_tokens ?? details.reasoning_tokens) : null,
  }
  const { cache_creation: written, server_tool_use: tools } = usage
  const forHour = isObject(written) ? countOf(written.ephemeral_1h_input_tokens) : null
  const searches = isObject(tools) ? countOf(tools.web_search_requests) : null
  if (forHour) told.cacheWriteHourTokens = forHour
  if (searches) told.toolUses = searches
  // Fast mode is reported beside the tier, and has its own price.
  const tier = usage.speed === 'fast' ? 'fast' : textOf(usage.service_tier)
  if (tier) told.serviceTier = tier
  // Clients need a number here; zero means that the count is unknown.
  return (told.inputTokens ?? 0) + (told.outputTokens ?? 0) === 0 ? null : told
}

/** Why an answer has no content: clients of the language show the explanation. */
export const waitingDetails = (verdictan: Verdictan): JsonObject => ({
  ...{ type: 'refusal', category: null, explanation: waitingWords(verdictan) },
})

/** A message that the gateway writes, as `message_start` and answers hold one. */
export const ownMessage = (model: string, exchangeId: string): JsonObject => ({
  id: `msg_${plainId(exchangeId)}`,
  type: 'message',
  role: 'assistant',
  model,
  content: [],
  stop_reason: null,
  stop_sequence: null,
  usage: { input_tokens: 0, output_tokens: 0 },
})
