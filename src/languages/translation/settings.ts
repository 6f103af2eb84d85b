/**
 * The settings of a request (`Setting` of `member-table.ts`), read from a caller's body and written for a provider, by
 * name.
 */

import { type MemberTable, membersWhere, type Setting } from '../member-table.ts'
import type { NeutralRequest, Stated } from '../neutral.ts'
import { isGiven, type JsonObject } from '../reading/json-value.ts'
import { type Feature, type FeatureTable, features, type Support } from '../translation-language.ts'
import { statedLimit, statedNumber } from './field-readers.ts'
import type { Lenience } from './lenience.ts'

type Settings = NeutralRequest['sampling']

/** The feature of `languages.md` for each setting. */
const featureOf = {
  maxOutputTokens: 'max_output_tokens',
  temperature: 'temperature',
  topP: 'top_p',
  topK: 'top_k',
  seed: 'seed',
  frequencyPenalty: 'frequency_penalty',
  presencePenalty: 'presence_penalty',
  stop: 'stop',
} as const satisfies Readonly<Record<Setting, Feature>>

const settingsOf = (table: MemberTable): { name: string; setting: Setting }[] =>
  Object.entries(table).flatMap(([name, { setting }]) => (setting === undefined ? [] : [{ name, setting }]))

/** A reader of the numeric settings; of several names the first given counts. */
export function numberReader(table: MemberTable): (body: Readonly<JsonObject>) => Omit<Settings, 'stop'> {
  const numbers = settingsOf(table).flatMap(({ name, setting }) => (setting === 'stop' ? [] : [{ name, setting }]))
  return (body) => {
    const settings: Omit<Settings, 'stop'> = {}
    for (const { name, setting } of numbers) {
      if (!isGiven(body[name]) || settings[setting] !== undefined) continue
      const stated = setting === 'maxOutputTokens' ? statedLimit(body[name], name) : statedNumber(body[name], name)
      if (stated !== null) settings[setting] = stated
    }
    return settings
  }
}

/**
 * A writer of the settings, each by its first name in the table. `refuse` throws for one that has no name there, or
 * leaves it out if the translation is lenient; absent if all have one.
 */
export function settingWriter(
  table: MemberTable,
  refuse?: (stated: Stated<unknown>, setting: Setting, lenience: Lenience | undefined) => void,
): (settings: Settings, lenience?: Lenience) => JsonObject {
  const named = settingsOf(table)
  const written = named.filter((one, at) => named.findIndex(({ setting }) => setting === one.setting) === at)
  const nameless = Object.keys(featureOf).filter(
    (setting): setting is Setting => !named.some((known) => known.setting === setting),
  )
  return (settings, lenience) => {
    for (const setting of nameless) {
      const stated = settings[setting]
      if (stated !== undefined) refuse?.(stated, setting, lenience)
    }
    const members: JsonObject = {}
    for (const { name, setting } of written) {
      const stated = settings[setting]
      if (stated !== undefined) members[name] = stated.value
    }
    return members
  }
}

/**
 * A language's entry for every feature: settings by their names, in `within` if they are nested, and all others as
 * given. Throws for a feature without an entry.
 */
export function featureTable(
  { members, within = '' }: { members: MemberTable; within?: string },
  others: Readonly<Partial<Record<Feature, Support>>>,
): FeatureTable {
  const table: Partial<Record<Feature, Support>> = { ...others }
  for (const [setting, feature] of Object.entries(featureOf)) {
    const [first, ...more] = membersWhere(members, (member) => member.setting === setting)
    if (first === undefined) continue
    const said = more.length === 0 ? {} : { said: [first, ...more].map((name) => `\`${name}\``).join(', ') }
    table[feature] = { as: `\`${within}${first}\``, ...said, ...others[feature] }
  }
  return isWhole(table) ? table : missing(table)
}

const isWhole = (table: Readonly<Partial<Record<Feature, Support>>>): table is FeatureTable =>
  Object.keys(features).every((feature) => Object.hasOwn(table, feature))

function missing(table: object): never {
  const names = Object.keys(features).filter((feature) => !Object.hasOwn(table, feature))
  throw new TypeError(`A language says nothing of ${names.join(', ')}`)
}
