/**
 * What a policy withheld until a person decides: the text of the answer and the arguments of the tools that it calls. A
 * decision event holds it for the queue. Of the events' readers only those see it who read escalations.
 */
import { isObject, objectsOf } from '../../languages/reading/json-value.ts'
import type { Event } from '../event.ts'

/** An event as a reader without escalations sees it; the same event where nothing was withheld. */
export function withoutWithheld(event: Event): Event {
  const escalation = event.details?.escalation
  if (!isObject(escalation)) return event
  const { answer: _answer, calls, ...notice } = escalation
  const tools = calls === undefined ? {} : { calls: objectsOf(calls).map(({ tool }) => ({ tool, arguments: null })) }
  return { ...event, details: { ...event.details, escalation: { ...notice, ...tools } } }
}
