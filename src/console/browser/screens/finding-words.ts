/**
 * What a policy found and where, in words: `messages: EMAIL (email)` is `an e-mail address in a message`. The config of
 * the policy, where it is known, says which of its terms or patterns is meant.
 */
import { humanize } from '../formats.ts'
import { isObject } from '../json-object.ts'

export function findingWords(target: string, config?: unknown): string {
  const [, place, label, entry] = /^(.*): ([A-Z0-9_]+) \((.*)\)$/s.exec(target) ?? []
  if (place !== undefined && label !== undefined && entry !== undefined) {
    return `${whatWords(label, entry, config)} ${placeWords(place)}`
  }
  const tool = /^tools\.(.+)$/s.exec(target)?.[1]
  return tool === undefined ? humanize(target).toLowerCase() : `the tool ${tool}`
}

const personalData: Readonly<Record<string, string>> = {
  email: 'an e-mail address',
  phone: 'a phone number',
  card: 'a card number',
  iban: 'an IBAN',
  ssn: 'a social security number',
  ip: 'an IP address',
}

function whatWords(label: string, entry: string, config: unknown): string {
  const [, list, index] = /^(terms|patterns)\[(\d+)\]$/.exec(entry) ?? []
  if (list !== undefined) return ofList(list, Number(index), config)
  if (entry === 'held_too_long') return 'a text that was too long to judge'
  if (entry === 'broken') return 'a text that could not be judged'
  if (label.toLowerCase() === entry) return personalData[entry] ?? humanize(entry)
  return `${humanize(label.toLowerCase())} (${entry.split('+').map(humanize).join(', ')})`
}

function ofList(list: string, index: number, config: unknown): string {
  const members: unknown = isObject(config) ? config[list] : undefined
  const member: unknown = Array.isArray(members) ? members[index] : undefined
  const name = isObject(member) ? member.name : member
  const one = list === 'terms' ? 'term' : 'pattern'
  return typeof name === 'string' ? `the ${one} “${name}”` : `${one} ${index + 1} of the policy`
}

const places: Readonly<Record<string, string>> = {
  messages: 'in a message',
  contents: 'in a message',
  input: 'in the input',
  prompt: 'in the prompt',
  system: 'in the system prompt',
  instructions: 'in the instructions',
  tools: 'in the description of a tool',
  choices: 'in the answer',
  candidates: 'in the answer',
  content: 'in the answer',
  output: 'in the answer',
}

/** The member of the body that holds it; `0/text` is a part of an answer that streams. */
function placeWords(place: string): string {
  const streamed = /^\d+\/(.+)$/.exec(place)?.[1]
  if (streamed === undefined) return places[place] ?? `in ${place}`
  if (/argument|input_json|tool/.test(streamed)) return 'in the arguments of a tool that the answer calls'
  return /reason|think/.test(streamed) ? 'in the reasoning of the answer' : 'in the answer'
}
