/** The tools of a responses request. Items of its input can offer some too, after those that came before. */
import { type JsonObject, objectsOf } from '../reading/json-value.ts'

const offering: ReadonlySet<unknown> = new Set(['additional_tools', 'tool_search_output'])

/** Whether an item of the input offers the tools in its `tools`. */
export const offersTools = ({ type }: Readonly<JsonObject>): boolean => offering.has(type)

/** The tools of the request and of its input, in order. */
export const offeredTools = ({ tools, input }: Readonly<JsonObject>): readonly JsonObject[] => {
  const later = objectsOf(input).filter(offersTools)
  return later.length === 0 ? objectsOf(tools) : [tools, ...later.map((item) => item.tools)].flatMap(objectsOf)
}
