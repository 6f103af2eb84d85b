/** What credentials look like: forms that their issuers chose to be recognised by, and those written beside their name. */
import { exactly, range, union } from './character-set.ts'
import { isOwnSecret } from './checksums.ts'
import { combinedDetector } from './combined-detector.ts'
import type { Detector } from './detector.ts'
import { type PatternSource, patternDetector } from './pattern-detector.ts'
import { runDetector } from './run-detector.ts'

const start = String.raw`(?<![A-Za-z0-9_\-])`
const end = '(?![A-Za-z0-9_])'

const secret = (label: string, pattern: string, check?: (text: string) => boolean): PatternSource => ({
  label,
  pattern,
  ...(check === undefined ? {} : { check }),
})

export const secretSources: readonly PatternSource[] = [
  secret('ANTHROPIC_KEY', String.raw`${start}sk-ant-[a-z]{2,10}\d{2}-[A-Za-z0-9_\-]{20,200}`),
  secret('OPENAI_KEY', String.raw`${start}sk-(?:proj-|svcacct-|admin-|None-)?[A-Za-z0-9_\-]{20,250}`),
  secret('AWS_KEY', `${start}(?:AKIA|ASIA|ABIA|ACCA)[A-Z2-7]{16}${end}`),
  secret(
    'AWS_KEY',
    String.raw`(?i)aws_?(?:secret)?_?(?:access)?_?key["']?\s{0,3}[:=]{1,2}>?\s{0,3}["']?[A-Za-z0-9/+]{40}(?![A-Za-z0-9/+])`,
  ),
  secret('GOOGLE_KEY', String.raw`${start}AIza[0-9A-Za-z_\-]{35}${end}`),
  secret('GOOGLE_KEY', String.raw`${start}ya29\.[0-9A-Za-z_\-]{20,400}`),
  secret('GOOGLE_KEY', String.raw`${start}GOCSPX-[0-9A-Za-z_\-]{28}${end}`),
  secret('AZURE_KEY', '(?i)AccountKey=[A-Za-z0-9+/]{86}=='),
  secret('AZURE_KEY', '[?&]sig=[A-Za-z0-9%+/]{43,70}(?:%3D|=)'),
  // Three characters stand before the digit; any word could begin so, and would have to be held for it.
  secret('AZURE_KEY', String.raw`\dQ~[A-Za-z0-9_~.\-]{31,34}(?![A-Za-z0-9_~.\-])`),
  secret('GITHUB_TOKEN', `${start}gh[pousr]_[A-Za-z0-9]{36,251}${end}`),
  secret('GITHUB_TOKEN', `${start}github_pat_[A-Za-z0-9_]{60,120}${end}`),
  secret('GITLAB_TOKEN', String.raw`${start}gl(?:pat|ptt|rt|dt|soat|cbt|ft)-[A-Za-z0-9_\-]{20,300}`),
  secret('HUGGINGFACE_TOKEN', `${start}(?:hf|api_org)_[A-Za-z0-9]{34,60}${end}`),
  secret('XAI_KEY', `${start}xai-[A-Za-z0-9]{60,120}${end}`),
  secret('GROQ_KEY', `${start}gsk_[A-Za-z0-9]{40,80}${end}`),
  secret('PERPLEXITY_KEY', `${start}pplx-[A-Za-z0-9]{40,80}${end}`),
  secret('REPLICATE_TOKEN', `${start}r8_[A-Za-z0-9]{37,40}${end}`),
  secret('NVIDIA_KEY', String.raw`${start}nvapi-[A-Za-z0-9_\-]{40,120}`),
  secret('NPM_TOKEN', `${start}npm_[A-Za-z0-9]{36}${end}`),
  secret('PYPI_TOKEN', String.raw`${start}pypi-AgE[A-Za-z0-9_\-]{40,250}`),
  secret('SENDGRID_KEY', String.raw`${start}SG\.[A-Za-z0-9_\-]{22}\.[A-Za-z0-9_\-]{43}`),
  secret('SLACK_TOKEN', String.raw`${start}xox[abeposr]-[A-Za-z0-9\-]{10,200}`),
  secret('SLACK_TOKEN', String.raw`${start}xapp-\d-[A-Za-z0-9\-]{20,200}`),
  secret('SLACK_TOKEN', String.raw`hooks\.slack\.com/services/T[A-Z0-9]{6,14}/B[A-Z0-9]{6,14}/[A-Za-z0-9]{16,32}`),
  secret('STRIPE_KEY', `${start}(?:sk|rk)_(?:live|test)_[A-Za-z0-9]{16,200}`),
  secret('STRIPE_KEY', `${start}whsec_[A-Za-z0-9+/]{24,100}`),
  secret('GATEHOUSE_TOKEN', `${start}gth[archs]?_[0-9A-Za-z]{36}${end}`, isOwnSecret),
]

const letters = [range(0x30, 0x39), range(0x41, 0x5a), range(0x61, 0x7a)].reduce(union)

let compiled: Detector | null = null

/** All kinds of secrets, compiled once; private keys and signed tokens have no bounded length and are followed as runs. */
export function secretDetector(): Detector {
  compiled ??= compileDetector()
  return compiled
}

const compileDetector = (): Detector =>
  combinedDetector([
    patternDetector(secretSources, { streaming: true, paramOf: () => 'config' }),
    runDetector({
      opening: secret('PRIVATE_KEY', '-----BEGIN [A-Z0-9 ]{0,30}PRIVATE KEY[A-Z ]{0,10}-----'),
      over: [letters, exactly('+/=-:,. \t\r\n')].reduce(union),
      closing: /-----END [A-Z0-9 ]{0,30}PRIVATE KEY[A-Z ]{0,10}-----$/,
    }),
    runDetector({
      opening: secret('JWT', String.raw`${start}eyJ[A-Za-z0-9_\-]{8,400}\.eyJ[A-Za-z0-9_\-]{4}`),
      over: union(letters, exactly('_-.=')),
    }),
  ])
