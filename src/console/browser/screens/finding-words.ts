/**
 * The targets of a policy's result in words: `messages: EMAIL (email)` is `found an e-mail address in a message`. A
 * target without a finding is what the policy decided on: `max_output_tokens` is `concerns max_output_tokens`. The
 * config of the policy, where it is known, says which of its terms or patterns is meant.
 */
import { humanize } from '../formats.ts'
import { isObject } from '../json-object.ts'

export function findingWords(targets: readonly string[], config?: unknown): string {
  const found = targets.map((target) => foundWords(target, config)).filter((words) => words !== null)
  const others = targets.filter((target) => foundWords(target, config) === null).map(concernWords)
  return [
    ...(found.length === 0 ? [] : [`found ${found.join(', ')}`]),
    ...(others.length === 0 ? [] : [`concerns ${others.join(', ')}`]),
  ].join('; ')
}

/** The same at the start of a line. */
export function findingSentence(targets: readonly string[], config?: unknown): string {
  const words = findingWords(targets, config)
  return words.charAt(0).toUpperCase() + words.slice(1)
}

/** Null for a target that says no finding. */
function foundWords(target: string, config: unknown): string | null {
  const [, place, label, entry] = /^(.*): ([A-Z0-9_]+) \((.*)\)$/s.exec(target) ?? []
  if (place === undefined || label === undefined || entry === undefined) return null
  return `${whatWords(label, entry, config)} ${placeWords(place)}`
}

/** Names stay as they are written. */
function concernWords(target: string): string {
  const tool = /^tools\.(.+)$/s.exec(target)?.[1]
  return tool === undefined ? target : `the tool ${tool}`
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
