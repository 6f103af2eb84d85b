/** Tests on chat completion chunks. */
import { isGiven, isObject, type JsonObject, objectsOf, textOf } from '../reading/json-value.ts'
import { spokenNames } from './members.ts'

/** The members of a chunk that only carries usage. */
const ofUsageFrame: ReadonlySet<string> = new Set([
  ...['id', 'object', 'created', 'model', 'choices', 'usage', 'system_fingerprint', 'service_tier', 'obfuscation'],
])

/** Whether a chunk only carries usage. */
export const isUsageAlone = (chunk: JsonObject): boolean =>
  isObject(chunk.usage) &&
  Array.isArray(chunk.choices) &&
  chunk.choices.length === 0 &&
  Object.keys(chunk).every((name) => ofUsageFrame.has(name))

/** Neither a chunk nor an error: its meaning is unknown. */
export const isUnforeseen = ({ choices, error }: JsonObject): boolean => !Array.isArray(choices) && !isGiven(error)

/** The objects of a list; empty if the list holds anything else. */
export const elementsOf = (list: unknown): readonly JsonObject[] =>
  Array.isArray(list) && list.every(isObject) ? list : []

/** Some providers send `""` or `"null"` as the finish reason of every chunk before the end. */
export const isFinished = ({ finish_reason: reason }: JsonObject): boolean =>
  typeof reason === 'string' && reason !== '' && reason !== 'null'

/** Whether a frame continues a choice's answer: the result of an asynchronous filter may come after the choice's end. */
export function bringsAnswer({ delta, text }: JsonObject): boolean {
  const { role: _, ...said } = isObject(delta) ? delta : { delta }
  return [...Object.values(said), text].some((value) => isGiven(value) && value !== '' && !isEmptyList(value))
}

const isEmptyList = (value: unknown): boolean => Array.isArray(value) && value.length === 0

/** The text of the only choice, if one member of its delta holds it and the chunk has no tool call and no usage. */
export function saidAlone({ choices, usage }: JsonObject): { member: string; text: string } | null {
  const [choice, ...others] = objectsOf(choices)
  if (choice === undefined || others.length > 0 || isFinished(choice) || isGiven(usage)) return null
  const { delta } = choice
  if (!isObject(delta) || isGiven(delta.tool_calls)) return null
  const member = spokenNames.find((name) => textOf(delta[name]))
  const text = member === undefined ? null : textOf(delta[member])
  return member === undefined || text === null ? null : { member, text }
}

export const indexOf = ({ index }: JsonObject, position: number): number =>
  typeof index === 'number' && Number.isSafeInteger(index) ? index : position
