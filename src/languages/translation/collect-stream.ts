/** Collects the events of a streamed answer into a whole one. */
import type { NeutralAnswer, NeutralEvent, NeutralPart } from '../neutral.ts'

type PartBegin = Extract<NeutralEvent, { type: 'part' }>
type PartEvent = Extract<NeutralEvent, { part: number }>

/** Parts in the order in which they began. The reader of the events handles errors; `finish` is `error` without one. */
export function collected(events: Iterable<NeutralEvent>): NeutralAnswer {
  const answer: NeutralAnswer = { id: null, model: null, parts: [], finish: 'error', stopSequence: null, usage: null }
  const parts = new Map<number, NeutralPart>()
  for (const event of events) {
    if (event.type === 'start') Object.assign(answer, { id: event.id, model: event.model })
    else if (event.type === 'usage') answer.usage = event.usage
    else if (event.type === 'finish') {
      answer.finish = event.finish
      answer.stopSequence = event.stopSequence
    } else if (event.type === 'part') parts.set(event.part, begun(event))
    else if ('part' in event) add(parts, event)
  }
  return { ...answer, parts: [...parts.values()] }
}

function begun(event: PartBegin): NeutralPart {
  const at = `parts.${event.part}`
  if (event.kind === 'tool_call') return { kind: 'tool_call', id: event.id, name: event.name, arguments: '', at }
  if (event.kind === 'thought')
    return { kind: 'thought', text: '', signature: null, redacted: null, language: event.language, at }
  return { kind: event.kind, text: '', at }
}

function add(parts: Map<number, NeutralPart>, event: PartEvent): void {
  const part = parts.get(event.part)
  if (part === undefined) return
  if (event.type === 'text') {
    if (part.kind === 'tool_call') part.arguments += event.text
    else if ('text' in part) part.text += event.text
  } else if (event.type === 'citation' && part.kind === 'text') {
    part.citations = [...(part.citations ?? []), event.citation]
  } else if (event.type === 'signature') {
    if (part.kind === 'tool_call') part.signature = { text: event.signature, language: event.language }
    if (part.kind !== 'thought') return
    part[event.redacted ? 'redacted' : 'signature'] = event.signature
    part.language = event.language
  }
}
