/** What a chat completion chunk is and says. */
import { isGiven, isObject, type JsonObject, objectsOf, textOf } from '../reading/json-value.ts'
import { spokenNames } from './members.ts'

/** What a chunk holds that is there for the usage alone. */
const ofUsageFrame: ReadonlySet<string> = new Set([
  ...['id', 'object', 'created', 'model', 'choices', 'usage', 'system_fingerprint', 'service_tier', 'obfuscation'],
])

/** Whether a chunk is there for the usage alone. */
export const isUsageAlone = (chunk: JsonObject): boolean =>
  isObject(chunk.usage) &&
  Array.isArray(chunk.choices) &&
  chunk.choices.length === 0 &&
  Object.keys(chunk).every((name) => ofUsageFrame.has(name))

/** No chunk, and no error: what it may be nobody knows. */
export const isUnforeseen = ({ choices, error }: JsonObject): boolean => !Array.isArray(choices) && !isGiven(error)

/** The elements of a list of objects; none where it holds anything else. */
export const elementsOf = (list: unknown): readonly JsonObject[] =>
  Array.isArray(list) && list.every(isObject) ? list : []

/** Some providers say of each chunk why it has not finished: for nothing, in words. */
export const isFinished = ({ finish_reason: reason }: JsonObject): boolean =>
  typeof reason === 'string' && reason !== '' && reason !== 'null'

/** Whether a frame goes on with a choice's answer: what an asynchronous filter found in it may come behind its end. */
export function bringsAnswer({ delta, text }: JsonObject): boolean {
  const { role: _, ...said } = isObject(delta) ? delta : { delta }
  return [...Object.values(said), text].some((value) => isGiven(value) && value !== '' && !isEmptyList(value))
}

const isEmptyList = (value: unknown): boolean => Array.isArray(value) && value.length === 0

/** The text of the only choice, where one member of its delta says it, no tool is called and no usage told. */
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
