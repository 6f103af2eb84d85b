/** What the gateway reads of Gemini's contents: their parts, and the tools that the provider runs. */
import { type Verdictan, waitingWords } from '../../failure.ts'
import type { RequestFacts } from '../dialect.ts'
import { isGiven, isObject, type JsonObject, objectsOf, textOf } from '../reading/json-value.ts'
import { addMember } from '../reading/texts/request-texts.ts'
import type { Holder } from '../reading/texts/text-members.ts'
import type { TextKind, TextSlot } from '../reading/texts/text-slot.ts'
import { FoundSlot, type FoundText, slotsOf, textLength, textsIn, whereAltered } from '../reading/texts/texts.ts'

/** The objects of a `parts`, which Google takes as a list or as one object. */
export const partsIn = (content: unknown): readonly JsonObject[] => {
  if (!isObject(content)) return []
  return isObject(content.parts) ? [content.parts] : objectsOf(content.parts)
}

/** The members of a candidate, or of what it said, that hold one text each. */
export const partHolder = (of: JsonObject): Holder => ({ of, members: ['text'] })

const kindOf = (part: JsonObject): TextKind => {
  if (part.thought === true) return 'reasoning'
  return isObject(part.functionResponse) || isObject(part.codeExecutionResult) ? 'tool_result' : 'content'
}

/** The texts of a part. `files`: texts in base64 are read too. */
export function partTexts(part: JsonObject, files = false): FoundText[] {
  const texts = textsIn(part, { kind: kindOf(part), files })
  if (part.thought !== true || part.thoughtSignature === undefined) return texts
  // A thought that does not match its signature would be refused.
  return texts.map((found) => whereAltered(found, () => delete part.thoughtSignature))
}

const roles: ReadonlyMap<unknown, string> = new Map([
  ['model', 'assistant'],
  ['function', 'tool'],
])

const roleOf = ({ role }: JsonObject): string | null => roles.get(role) ?? textOf(role) ?? 'user'

const partsOnly: ReadonlySet<string> = new Set(['parts'])

/** Adds the texts of one content: first those of its parts. */
function addContent(slots: TextSlot[], content: JsonObject, member: string, role: string | null): void {
  const parts = partsIn(content)
  for (const part of parts) {
    const isResult = isObject(part.functionResponse)
    const owner = { member, role: isResult ? 'tool' : role, message: isResult ? part : content }
    for (const found of partTexts(part, true)) slots.push(new FoundSlot(found, owner))
  }
  const isRead = isObject(content.parts) || parts === content.parts
  for (const found of textsIn(content, { files: true, ...(isRead && { except: partsOnly }) })) {
    slots.push(new FoundSlot(found, { member, role }))
  }
}

export function addContents(slots: TextSlot[], body: JsonObject): void {
  const contents = objectsOf(body.contents)
  for (const content of contents) addContent(slots, content, 'contents', roleOf(content))
  if (contents !== body.contents) addMember(slots, body, 'contents', { role: null, listed: true })
}

export function addSystem(slots: TextSlot[], body: JsonObject): void {
  const { systemInstruction: said } = body
  if (isObject(said)) addContent(slots, said, 'systemInstruction', 'system')
  else addMember(slots, body, 'systemInstruction', { role: 'system' })
}

/** The texts of the parts of a whole answer's candidates. */
export function candidateSlots(candidates: unknown): TextSlot[] {
  const owner = { member: 'candidates', role: 'assistant' }
  return objectsOf(candidates).flatMap((candidate) => {
    const parts = partsIn(candidate.content).flatMap((part) => partTexts(part))
    const { content, ...rest } = candidate
    const beside = [...textsIn(rest), ...(isObject(content) ? textsIn(content, { except: partsOnly }) : [])]
    return slotsOf([...parts, ...beside], owner)
  })
}

/** Characters of the generated text in candidates. */
export function generatedLength(candidates: unknown): number {
  let length = 0
  for (const { content } of objectsOf(candidates)) {
    for (const { text, functionCall } of partsIn(content)) {
      length += (textOf(text) ?? '').length
      if (isObject(functionCall)) length += textLength(functionCall.args)
    }
  }
  return length
}

/** Whether the body's bytes do not bound the tokens: images and documents, fetched files, a cache of the provider. */
export const reachesBeyondParts = (contents: unknown): boolean =>
  objectsOf(contents).some((content) =>
    partsIn(content).some(
      (part) => isGiven(part.inlineData) || isGiven(part.fileData) || holdsMedia(part.functionResponse),
    ),
  )

const holdsMedia = (response: unknown): boolean => isObject(response) && objectsOf(response.parts).length > 0

/** Members of a tool that the caller runs itself. */
const runByCaller: ReadonlySet<string> = new Set(['functionDeclarations', 'computerUse'])

/** The tools that the provider runs, as `tools` names them. */
export const hostedToolsIn = (tools: unknown): readonly string[] =>
  objectsOf(tools).flatMap((tool) => Object.keys(tool).filter((name) => isGiven(tool[name]) && !runByCaller.has(name)))

const plainName = /^[a-zA-Z]{1,40}$/

/** The provider runs its tools as often as the model asks for them, and the language has no maximum of uses. */
export function unboundedMember(
  body: Readonly<JsonObject>,
): Pick<RequestFacts, 'unbounded'> & Partial<Pick<RequestFacts, 'unboundedWhy'>> {
  const [tool] = hostedToolsIn(body.tools)
  if (tool !== undefined) {
    const named = plainName.test(tool) ? `the tool ${tool}` : 'one of the tools'
    const unboundedWhy = `The provider runs ${named} as often as the model asks for it: leave the tool out`
    return { unbounded: 'tools', unboundedWhy }
  }
  const member = 'generationConfig.responseModalities'
  const modalities = body[member]
  if (!Array.isArray(modalities) || modalities.every((each) => each === 'TEXT')) return { unbounded: null }
  return { unbounded: member, unboundedWhy: 'The length of an answer in media has no limit: ask for TEXT alone' }
}

/**
 * The candidate of a request that waits for a person. Google's clients show its text, and its finish reason says that
 * it is no answer.
 */
export const waitingCandidate = (verdictan: Verdictan, index = 0): JsonObject => ({
  content: { role: 'model', parts: [{ text: waitingWords(verdictan) }] },
  finishReason: 'SAFETY',
  finishMessage: waitingWords(verdictan),
  index,
})
