/**
 * The texts of a request's members: all that a provider may read as prose, in whatever shape it came, because some read
 * leniently what the language does not foresee. What is deliberately not read is in one list, with the reason.
 */

import type { JsonObject } from '../json-value.ts'
import { isKnownLabel } from './known-labels.ts'
import type { TextSlot } from './text-slot.ts'
import { FoundSlot, type FoundText, textsOfMember } from './texts.ts'

/** What is not read of a request. Beside it: ids, labels and encoded bytes that are what they should be (`known-labels.ts`). */
interface Unread {
  /** Outermost members, the whole of them. */
  readonly members?: readonly string[]
  /** Members at any depth of tools, formats and prompts: strings, and lists of them. */
  readonly within?: readonly string[]
  /** Of those within, only words of the languages, or what has no space. Absent: whatever they say. */
  readonly as?: 'word' | 'name'
  readonly reason: string
}

export const unread: readonly Unread[] = [
  { members: ['model', 'stream', 'store'], reason: 'They say what is to be done, and other policies hold them' },
  {
    members: [
      ...[
        'service_tier',
        'reasoning_effort',
        'verbosity',
        'modalities',
        'truncation',
        'include',
        'encoding_format',
        'anthropic_version',
        'betas',
        'audio',
        'prompt_cache_retention',
      ],
    ],
    within: ['tool_choice', 'function_call', 'verbosity', 'mode', 'syntax', 'type', 'effort', 'summary', 'display'],
    as: 'word',
    reason: 'Settings: a provider knows its own words for them, and takes none for what is said',
  },
  {
    members: ['session_id', 'prompt_cache_key', 'previous_response_id', 'conversation', 'container'],
    within: ['id', 'vector_store_ids', 'file_ids', 'skill_id', 'connector_id', 'container', 'version'],
    as: 'name',
    reason: 'They name what the gateway or the provider keeps',
  },
  {
    within: ['server_url', 'url'],
    as: 'name',
    reason: 'Addresses of servers that the provider calls: no model is shown them',
  },
  {
    within: ['authorization', 'authorization_token', 'headers'],
    reason: 'Credentials for those servers: no model is shown them, and each call would be found to hold a secret',
  },
  {
    within: [
      ...['required', 'propertyOrdering', 'format', 'contentEncoding', 'contentMediaType'],
      ...['$ref', '$id', '$schema', '$anchor', '$dynamicRef', '$dynamicAnchor'],
    ],
    as: 'name',
    reason: 'What holds a schema together, and names of properties said again: changed, it would be another schema',
  },
]

const unreadMembers: ReadonlySet<string> = new Set(unread.flatMap(({ members = [] }) => members))
const unreadWithin: ReadonlyMap<string, Unread> = new Map(
  unread.flatMap((entry) => (entry.within ?? []).map((key) => [key, entry] as const)),
)

/** Whether a text within tools, formats or prompts is none that is read. */
export function isUnread({ place, text }: Pick<FoundText, 'place' | 'text'>): boolean {
  const end = place.lastIndexOf('#')
  const start = place.lastIndexOf('/')
  const known = unreadWithin.get(place.slice(start + 1, end > start ? end : place.length))
  if (known === undefined) return place.includes('/headers/') && inHeaders.test(place)
  if (known.as === 'word') return isKnownLabel(text)
  return known.as === undefined || !/\s/.test(text)
}

/** Of a tool or a server itself, not of what a schema calls so. */
const inHeaders = /^\w+(?:[#/[]\d+\]?)*\/headers\//

interface Asked {
  role: string | null
  /** Its list's objects are read one by one, and here only what else there is. */
  listed?: boolean
}

/** Adds the texts of one member, whatever its shape. */
export function addMember(slots: TextSlot[], body: JsonObject, member: string, { role, listed = false }: Asked): void {
  if (body[member] === undefined) return
  const owner = { member, role }
  const options = listed ? { files: true, listed: member } : { files: true }
  for (const found of textsOfMember(body, member, options)) slots.push(new FoundSlot(found, owner))
}

/** Adds what callers say about their tools, formats and prompts, which is said to the model too. */
export function addDescribed(slots: TextSlot[], body: JsonObject, member: string, role = 'system'): void {
  if (body[member] === undefined) return
  const owner = { member, role }
  for (const found of textsOfMember(body, member, { files: true })) {
    if (!isUnread(found)) slots.push(new FoundSlot(found, owner))
  }
}

/** Adds the texts of every member that nobody reads otherwise: stop sequences, metadata, and what nobody has heard of. */
export function addRest(slots: TextSlot[], body: JsonObject, read: readonly string[]): void {
  for (const member in body) {
    if (!unreadMembers.has(member) && !read.includes(member)) addMember(slots, body, member, { role: null })
  }
}
