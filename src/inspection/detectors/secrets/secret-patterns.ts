/** The forms of credentials: recognisable formats of their issuers, and values written beside a credential's name. */
import { exactly, range, union } from '../../regex/character-set.ts'
import { type PatternSource, patternDetector } from '../../regex/pattern-detector.ts'
import { combinedDetector } from '../combined-detector.ts'
import type { Detector } from '../detector.ts'
import { isOwnSecret } from '../personal-data/checksums.ts'
import { runDetector } from '../run-detector.ts'
import { alnum, base64, type SecretRule, url } from './secret-rule.ts'
import { credentialNames, issuerNames, secretRules, unprefixedRules } from './secret-rules.ts'
import { holdsPassword, holdsRandom, holdsSecret, isRandom, isSecret } from './secret-shape.ts'

const start = String.raw`(?<![A-Za-z0-9_\-])`
const end = '(?![A-Za-z0-9_])'

const secret = (label: string, pattern: string, check: (text: string) => boolean): PatternSource => ({
  label,
  pattern,
  check,
})

/** A credential ends where none of its characters can follow, so that it is found whole or not at all. */
const sourceOf = ({ label, prefix, body, random }: SecretRule): PatternSource =>
  secret(label, `${start}${prefix}${body}${endOf(body)}`, random === true ? isRandom : isSecret)

const endOf = (body: string): string => {
  if (body.includes('+/')) return '(?![A-Za-z0-9+/=_])'
  return body.includes('-]') ? String.raw`(?![A-Za-z0-9_\-])` : end
}

/** The text between a name and its value: `=`, `:`, `=>`, `":"`, `>`; a comma only before a quote. */
const assigned = String.raw`["'\`\]]{0,2}[ \t]{0,3}(?:(?:[:?|]{0,3}=>?|:|>)[ \t\r\n]{0,5}["'\`]{0,3}|,[ \t]{0,3}["'\`])`

const ofValue = String.raw`[^\s"'\`<>:;,()\[\]{}\\|&]`
const value = `${ofValue}{16,200}(?!${ofValue})`

const named: readonly PatternSource[] = [
  secret(
    'AWS_KEY',
    String.raw`(?i)aws_?(?:secret)?_?(?:access)?_?key["']?\s{0,3}[:=]{1,2}>?\s{0,3}["']?[A-Za-z0-9/+]{40}(?![A-Za-z0-9/+])`,
    holdsSecret,
  ),
  secret('AZURE_KEY', '(?i)(?:Account|SharedAccess)Key=(?:[A-Za-z0-9+/]{86}==|[A-Za-z0-9+/]{43}=)', isSecret),
  secret('AZURE_KEY', '[?&]sig=[A-Za-z0-9%+/]{43,70}(?:%3D|=)', isSecret),
  secret(
    'CREDENTIAL',
    String.raw`(?i)(?:${credentialNames}|(?<![A-Za-z])(?:${issuerNames}))[\w .\-]{0,20}${assigned}${value}`,
    holdsRandom,
  ),
  secret('CREDENTIAL', `(?i)authorization${assigned}(?:(?:bearer|basic|token) {1,2})?${value}`, holdsRandom),
  secret('URL_PASSWORD', String.raw`://[^\s:/@"'<>\\]{0,64}:[^\s/"'<>\\]{1,250}@`, holdsPassword),
]

/** Forms with a distinctive prefix. */
const prefixedSecrets: readonly PatternSource[] = [
  ...secretRules.map(sourceOf),
  secret('GATEHOUSE_TOKEN', `${start}gth[archsm]?_[0-9A-Za-z]{36}${end}`, isOwnSecret),
]

/** Forms whose prefix many words share; together with the others they would need too many states. */
const otherSecrets: readonly PatternSource[] = [...unprefixedRules.map(sourceOf), ...named]

const letters = [range(0x30, 0x39), range(0x41, 0x5a), range(0x61, 0x7a)].reduce(union)

let compiled: Detector | null = null

/** All kinds of secrets, compiled once; forms of unbounded length are followed as runs. */
export function secretDetector(): Detector {
  if (compiled === null) {
    compiled = compileDetector()
    // Builds its screen in advance, so that the first text does not wait for it.
    compiled.mayMatch('')
  }
  return compiled
}

/** Tokens that may be longer than the text that can be held. */
const longTokens: readonly PatternSource[] = [
  secret('JWT', String.raw`${start}eyJ${url}{8,400}\.eyJ${url}{4}`, () => true),
  secret('JWT', `${start}ZXlK${base64}{60}`, isSecret),
  secret('GOOGLE_KEY', String.raw`${start}ya29\.${url}{20}`, isSecret),
  secret('PYPI_TOKEN', `${start}pypi-AgE${url}{40}`, isSecret),
  secret('AWS_KEY', `${start}(?:FwoG|FQoG|IQoJb3JpZ2lu)${base64}{100}`, isSecret),
  secret('BEDROCK_KEY', `${start}bedrock-api-key-YmVkcm9jay5hbWF6b25hd3MuY29t`, () => true),
  secret('DROPBOX_TOKEN', String.raw`${start}sl\.(?:u\.)?${url}{100}`, isSecret),
  secret('FLY_TOKEN', `${start}fm(?:1[ar]|2)_${base64}{100}`, isSecret),
  secret('ONEPASSWORD_TOKEN', `${start}ops_eyJ${alnum}{50}`, isSecret),
]

export const secretSources: readonly PatternSource[] = [...prefixedSecrets, ...otherSecrets]

const compileDetector = (): Detector =>
  combinedDetector([
    patternDetector(prefixedSecrets, { streaming: true, paramOf: () => 'config' }),
    patternDetector(otherSecrets, { streaming: true, paramOf: () => 'config' }),
    runDetector({
      openings: [{ label: 'PRIVATE_KEY', pattern: '-----BEGIN [A-Z0-9 ]{0,30}PRIVATE KEY[A-Z ]{0,10}-----' }],
      over: [letters, exactly('+/=-:,. \t\r\n\\')].reduce(union),
      closing: /-----END [A-Z0-9 ]{0,30}PRIVATE KEY[A-Z ]{0,10}-----$/,
    }),
    runDetector({ openings: longTokens, over: union(letters, exactly('_-.=+/')) }),
  ])
