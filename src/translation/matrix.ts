/**
 * Renders what the languages say of themselves as the Markdown of `languages.md`: what providers are asked and how, what
 * is refused and why, what callers say, and what becomes of each member of a caller's body. A pair is one row of the
 * callers' table with the same row of the providers': what a caller can say is carried as the provider's column says.
 */
import { embeddingMembers } from './gemini-embeddings.ts'
import { languages } from './index.ts'
import {
  type Feature,
  features,
  type Language,
  type MemberTable,
  type MemberTreatment,
  type Support,
} from './language.ts'

const introduction = `# Any client, any provider

What each language of the translation can say. This file is written from the code, and a test holds it current. Where the
language of the caller and that of the provider are the same, bytes are passed on and nothing of this applies.

A pair is one row of both tables: what the caller says as in the first is carried as in the second. **Refused** is 400
\`translation_unsupported\` with the caller's field as \`param\`; what is *left out* changes no answer.

Of the other families embeddings are translated for gemini; elsewhere a family that a provider does not speak is 400
\`model_family_unsupported\`, \`param\` \`model\`.

A conversation may change its model: what a provider thought or signed goes out with a mark, comes back to that provider
alone, and is left out for every other, also where the bytes are passed on otherwise.
`

export function renderLanguages(): string {
  const known = Object.entries(languages)
  const callers = known.filter(([, { caller }]) => caller !== null)
  const members = callers.filter(([, { members: table }]) => table !== undefined)
  return [
    introduction,
    '## What callers say\n',
    table(callers, ({ features: said }, feature) => saidAs(said[feature])),
    '## What providers are asked, and answer\n',
    table(known, ({ features: written }, feature) => writtenAs(written[feature])),
    ...members.map(([name, { members: table = {} }]) => memberSection(`Members of a ${name} request`, table)),
    memberSection('Members of an embeddings request to gemini', embeddingMembers),
  ].join('\n')
}

function table(columns: readonly [string, Language][], cell: (language: Language, feature: Feature) => string): string {
  const names = columns.map(([name]) => name)
  const rows = featureNames.map((feature) => [
    features[feature],
    ...columns.map(([, language]) => cell(language, feature)),
  ])
  return markdown([['', ...names], ...rows])
}

const featureNames = Object.keys(features).filter((name): name is Feature => name in features)

function saidAs(support: Support): string {
  if (support.said !== undefined) return support.said ?? '-'
  return 'as' in support ? support.as : '-'
}

function writtenAs(support: Support): string {
  if ('as' in support) return support.as
  return 'refused' in support ? `**refused**: ${support.refused}` : `*left out*: ${support.withoutEffect}`
}

function memberSection(title: string, members: MemberTable): string {
  const rows = Object.entries(members)
    .toSorted(([left], [right]) => (left < right ? -1 : 1))
    .map(([member, treatment]) => [`\`${member}\``, treatedAs(treatment)])
  return `## ${title}\n\nA member that is not listed is refused.\n\n${markdown([['', ''], ...rows])}`
}

function treatedAs(treatment: MemberTreatment): string {
  if (treatment === 'carried') return 'carried'
  if ('withoutEffect' in treatment) return `*without effect*: ${treatment.withoutEffect}`
  const { onlyAs, refused } = treatment
  if (onlyAs === undefined) return `**refused**: ${refused}`
  return `**refused** unless it is ${onlyAs.map((value) => `\`${JSON.stringify(value)}\``).join(' or ')}: ${refused}`
}

function markdown([head = [], ...rows]: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]) => `| ${cells.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |`
  return `${[line(head), line(head.map(() => '---')), ...rows.map(line)].join('\n')}\n`
}
