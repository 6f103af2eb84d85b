/**
 * The forms of credentials, by issuer: data. `sample` is the form as the issuer writes it, `{hex 32}` standing for 32
 * random characters; tests write credentials by it.
 *
 * Prefixes and lengths come from the issuers' documentation and, where `gitleaks` is named, from the rules of gitleaks
 * (https://github.com/gitleaks/gitleaks, config/gitleaks.toml; MIT licence, Copyright (c) 2019 Zachary Rice).
 */
export interface SecretRule {
  readonly label: string
  /** The text before the variable part; a pattern. */
  readonly prefix: string
  /** The variable part; a pattern. */
  readonly body: string
  readonly sample: string
  /** The gitleaks rule that it covers. */
  readonly gitleaks?: string
  /** It counts only if the value is random and not made of words: its prefix is not distinctive enough. */
  readonly random?: true
}

export const alnum = '[A-Za-z0-9]'
export const url = String.raw`[A-Za-z0-9_\-]`
export const hex = '[0-9a-fA-F]'
export const base64 = '[A-Za-z0-9+/]'
export const uuid = `${hex}{8}-${hex}{4}-${hex}{4}-${hex}{4}-${hex}{12}`

export const rule = (label: string, prefix: string, body: string, sample: string, gitleaks?: string): SecretRule => ({
  label,
  prefix,
  body,
  sample,
  ...(gitleaks === undefined ? {} : { gitleaks }),
})

export const randomRule = (
  label: string,
  prefix: string,
  body: string,
  sample: string,
  gitleaks?: string,
): SecretRule => ({
  ...rule(label, prefix, body, sample, gitleaks),
  random: true,
})
