/**
 * The texts of a request's members: everything that a provider may read as prose, in any shape, because some
 * providers accept shapes that the language does not define. The member tables list the members that are not read
 * (`member-table.ts`); the exceptions within tools, formats and prompts are in one list here, with the reason.
 */

import { families } from '../../families.ts'
import { type MemberTable, type MemberText, membersWhere } from '../../member-table.ts'
import type { JsonObject } from '../json-value.ts'
import { isKnownLabel } from './known-labels.ts'
import type { TextSlot } from './text-slot.ts'
import { FoundSlot, type FoundText, textsOfMember } from './texts.ts'

/**
 * The parts of tools, formats and prompts that are not read. In addition: ids, labels and encoded bytes in their
 * expected form (`known-labels.ts`).
 */
interface Unread {
  /** Members at any depth: strings, and lists of strings. */
  readonly within: readonly string[]
  /** Only words of the languages, or values without a space. Absent: any value. */
  readonly as?: 'word' | 'name'
  readonly reason: string
}

export const unread: readonly Unread[] = [
  {
    within: ['tool_choice', 'function_call', 'verbosity', 'mode', 'syntax', 'type', 'effort', 'summary', 'display'],
    as: 'word',
    reason: 'Settings: a provider knows its own words for them, and takes none for what is said',
  },
  {
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

/**
 * Outermost members that are not read, in any language: switches, which other policies control; settings, whose words
 * only the provider knows; and names of things that the gateway or the provider stores.
 */
export const unreadMembers: ReadonlySet<string> = new Set(
  Object.values(families).flatMap(({ members }) => membersWhere(members, ({ text }) => text === 'none')),
)
const unreadWithin: ReadonlyMap<string, Unread> = new Map(
  unread.flatMap((entry) => entry.within.map((key) => [key, entry] as const)),
)

/** Whether a text within tools, formats or prompts is excluded from reading. */
export function isUnread({ place, text }: Pick<FoundText, 'place' | 'text'>): boolean {
  const end = place.lastIndexOf('#')
  const start = place.lastIndexOf('/')
  const known = unreadWithin.get(place.slice(start + 1, end > start ? end : place.length))
  if (known === undefined) return place.includes('/headers/') && inHeaders.test(place)
  if (known.as === 'word') return isKnownLabel(text)
  return known.as === undefined || !/\s/.test(text)
}

/** A member of a tool or a server itself, not one that a schema describes. */
const inHeaders = /^\w+(?:[#/[]\d+\]?)*\/headers\//

type Read = (slots: TextSlot[], body: JsonObject) => void

/** Members of a table that the dialect reads itself. */
type OwnMember<Table> = { [Name in keyof Table]: Table[Name] extends { text: 'own' } ? Name : never }[keyof Table]

/**
 * A reader of the texts of a request: first the table's members in its order, then every other member, such as stop
 * sequences, metadata, and unknown members.
 */
export function textReader<Table extends MemberTable>(
  table: Table,
  own: Readonly<Record<OwnMember<Table> & string, Read>>,
): (body: JsonObject) => TextSlot[] {
  const known = new Set(unreadMembers)
  const reads: Read[] = []
  const ownReads: Readonly<Record<string, Read>> = own
  for (const [name, { text }] of Object.entries(table)) {
    if (text === undefined) continue
    known.add(name)
    if (text === 'none' || text === 'none here') continue
    reads.push(ownReads[name] ?? readerOf(name, text))
  }
  return (body) => {
    const slots: TextSlot[] = []
    for (const read of reads) read(slots, body)
    for (const name in body) if (!known.has(name)) addMember(slots, body, name, { role: null })
    return slots
  }
}

function readerOf(name: string, text: MemberText): Read {
  if (text === 'description') return (slots, body) => addDescribed(slots, body, name, 'system')
  if (text === 'user description') return (slots, body) => addDescribed(slots, body, name, 'user')
  return (slots, body) => addMember(slots, body, name, { role: text })
}

interface Asked {
  role: string | null
  /** The dialect reads the objects of its list one by one; only the rest is read here. */
  listed?: boolean
}

/** Adds the texts of one member, in any shape. */
export function addMember(slots: TextSlot[], body: JsonObject, member: string, { role, listed = false }: Asked): void {
  if (body[member] === undefined) return
  const owner = { member, role }
  const options = listed ? { files: true, listed: member } : { files: true }
  for (const found of textsOfMember(body, member, options)) slots.push(new FoundSlot(found, owner))
}

/** Adds the caller's descriptions of tools, formats and prompts, which the model reads too. */
function addDescribed(slots: TextSlot[], body: JsonObject, member: string, role: string): void {
  if (body[member] === undefined) return
  const owner = { member, role }
  for (const found of textsOfMember(body, member, { files: true })) {
    if (!isUnread(found)) slots.push(new FoundSlot(found, owner))
  }
}
