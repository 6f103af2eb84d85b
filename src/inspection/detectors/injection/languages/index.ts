/** The languages besides English: one line each. */
import { arabic } from './arabic.ts'
import { chinese } from './chinese.ts'
import { french } from './french.ts'
import { german } from './german.ts'
import { hindi } from './hindi.ts'
import { italian } from './italian.ts'
import { japanese } from './japanese.ts'
import type { InjectionLanguage } from './language.ts'
import { portuguese } from './portuguese.ts'
import { russian } from './russian.ts'
import { spanish } from './spanish.ts'

export const injectionLanguages: Readonly<Record<string, InjectionLanguage>> = {
  ...{ arabic, chinese, french, german, hindi, italian, japanese, portuguese, russian, spanish },
}
