/** Every language of the translation. Adding one is its file and its line here. */
import type { Family } from '../dialects/dialect.ts'
import { converse } from './converse.ts'
import type { CallerLanguage, ProviderLanguage } from './language.ts'
import type { LanguageName } from './neutral.ts'

/** Those that applications speak, by the family of their route. */
export const callerLanguages: ReadonlyMap<Family, CallerLanguage> = new Map()

/** Those that providers are asked in. */
export const providerLanguages: ReadonlyMap<LanguageName, ProviderLanguage> = new Map([
  [converse.provider.name, converse.provider],
])
