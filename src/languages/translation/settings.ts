/** The settings of a request (`Setting` of `member-table.ts`), read from a caller's body and written for a provider, by name. */

import { type MemberTable, membersWhere, type Setting } from '../member-table.ts'
import type { NeutralRequest, Stated } from '../neutral.ts'
import type { JsonObject } from '../reading/json-value.ts'
import { type Feature, type FeatureTable, features, type Support } from '../translation-language.ts'
import { statedLimit, statedNumber } from './field-readers.ts'

type Settings = NeutralRequest['sampling']

/** What a provider's language calls each setting that it has, in the order in which they are written. */
export type SettingNames = Readonly<Partial<Record<Setting, string>>>

/** The feature of `languages.md` that each setting is. */
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

const isSetting = (name: string): name is Setting => Object.hasOwn(featureOf, name)

/** The first name of each setting in a table. */
export function settingNames(table: MemberTable): SettingNames {
  const names: Partial<Record<Setting, string>> = {}
  for (const [name, { setting }] of Object.entries(table)) if (setting !== undefined) names[setting] ??= name
  return names
}

/** Reads the settings that are numbers; of several names of one the first that is given. */
export function readNumbers(body: Readonly<JsonObject>, table: MemberTable): Omit<Settings, 'stop'> {
  const settings: Omit<Settings, 'stop'> = {}
  for (const [name, { setting }] of Object.entries(table)) {
    if (setting === undefined || setting === 'stop' || settings[setting] !== undefined) continue
    const read = setting === 'maxOutputTokens' ? statedLimit : statedNumber
    const stated = read(body[name], name)
    if (stated !== null) settings[setting] = stated
  }
  return settings
}

/** The settings by a language's names. `refuse` throws for one that has no name there; absent where all have. */
export function writeSettings(
  settings: Settings,
  names: SettingNames,
  refuse?: (stated: Stated<unknown>, setting: Setting) => void,
): JsonObject {
  const members: JsonObject = {}
  for (const setting of Object.keys(settings).filter(isSetting)) {
    const stated = settings[setting]
    if (stated !== undefined && names[setting] === undefined) refuse?.(stated, setting)
  }
  for (const [setting, name] of Object.entries(names)) {
    const stated = isSetting(setting) ? settings[setting] : undefined
    if (stated !== undefined) members[name] = stated.value
  }
  return members
}

/**
 * What a language makes of every feature: of its settings by their names, in `within` where they stand deeper, and of all
 * others as given. Throws for a feature of which nothing is said.
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
