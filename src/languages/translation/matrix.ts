/**
 * Renders the languages' own tables as the Markdown of `languages.md`: for each pair of caller and provider the
 * features that are carried, left out and refused, and why; their wire forms; and what becomes of each member of a
 * caller's body.
 */
import { bedrockEmbeddingMembers } from '../converse/embeddings.ts'
import { embeddingMembers } from '../embeddings/members.ts'
import type { MemberTable, Translation } from '../member-table.ts'
import { type Feature, features, type Language, type Support } from '../translation-language.ts'
import { languages } from './languages.ts'

const introduction = `# Any client, any provider

What each language of the translation can say. This file is written from the code, and a test holds it current. Where the
language of the caller and that of the provider are the same, bytes are passed on and nothing of this applies.

A model that speaks chat and responses is asked in chat, and in responses where its record lists no chat, or where chat
cannot say the request and the record lists both or the provider is OpenAI itself.

Refused is 400 \`translation_unsupported\` with the caller's field as \`param\`; what is left out changes no answer.

What is left out and noted is in the \`details.notes\` of the outcome event, as \`translation.left_out:FIELD\`. It
tracks, tunes or asks for something that the provider does not have, and the answer does not need it: a tool that only
its own provider runs is left out unless \`tool_choice\` requires it, and so are \`defer_loading\` of a tool,
\`verbosity\`, \`top_k\`, the \`output_config\` of a message, and \`parallel_tool_calls: false\` where calls cannot be kept apart. \`json_object\` becomes an instruction
where the provider has JSON by a schema only, an effort that the model lacks the nearest one, and
instructions inside a conversation stand before it where the provider takes them only there
(\`translation.replaced:FIELD\`).

Of the other families embeddings are translated for gemini, and at bedrock for Amazon Titan Text Embeddings and Cohere
Embed; elsewhere a family that a provider does not speak is 400 \`model_family_unsupported\`, \`param\` \`model\`. So is
audio of gemini: its models speak in raw samples by voices of their own, and write down what they hear only when prompted
to, which is no transcription.

A conversation may change its model: what a provider thought or signed goes out with a mark, comes back to that provider
alone, and is left out for every other, also where the bytes are passed on otherwise.
`

export function renderLanguages(): string {
  const known = Object.entries(languages)
  const callers = known.filter(([, { caller }]) => caller !== null)
  const members = callers.filter(([, { members: table }]) => table !== undefined)
  return [
    introduction,
    '## Each feature, from each caller to each provider\n',
    pairTable(callers, known),
    '## How callers say it\n',
    table(callers, ({ features: said }, feature) => saidAs(said[feature])),
    '## How providers are asked, and answer\n',
    table(known, ({ features: written }, feature) => writtenAs(written[feature])),
    ...members.map(([name, { members: table = {} }]) => memberSection(`Members of a ${name} request`, table)),
    memberSection('Members of an embeddings request to gemini', embeddingMembers),
    memberSection('Members of an embeddings request to bedrock', bedrockEmbeddingMembers),
  ].join('\n')
}

/**
 * One mark for each feature of each pair, and under the table the reasons why something is refused or left out.
 * Requests go from the caller's form to the provider's, answers the other way.
 */
function pairTable(callers: readonly [string, Language][], providers: readonly [string, Language][]): string {
  const pairs = callers.flatMap(([from, caller]) =>
    providers.flatMap(([to, provider]) => (from === to ? [] : [{ from, to, caller, provider }])),
  )
  const notes: string[] = []
  const noted = (mark: string, who: string, why: string): string => {
    const note = `${who}: ${why}`
    if (!notes.includes(note)) notes.push(note)
    return `${mark} ${notes.indexOf(note) + 1}`
  }
  const rows = featureNames.map((feature) => [
    features[feature],
    ...pairs.map(({ from, to, caller, provider }) => {
      const isOfAnswer = feature.startsWith('answer_')
      const [said, heard] = [caller.features[feature], provider.features[feature]]
      const begins = isOfAnswer ? 'as' in heard : saidAs(said) !== none
      if (!begins) return none
      const [support, who] = isOfAnswer ? [said, from] : [heard, to]
      if ('withoutEffect' in support) return noted(marks.leftOut, who, support.withoutEffect)
      if (support.refused === undefined) return marks.carried
      return noted('as' in support ? marks.partly : marks.refused, who, support.refused)
    }),
  ])
  const head = ['', ...pairs.map(({ from, to }) => `${from} to ${to}`)]
  return [legend, markdown([head, ...rows]), ...notes.map((note, index) => `${index + 1}. ${note}`), ''].join('\n')
}

/** What a language cannot say. */
const none = '-'
const marks = { carried: '✓', partly: '◐', leftOut: '○', refused: '✗' } as const
const legend = `${marks.carried} carried, ${marks.partly} carried but for what the note says, which is refused, \
${marks.refused} refused, ${marks.leftOut} left out, ${none} nothing that callers of the language can say to other providers, \
or that providers say. The numbers are those of the notes.
`

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
  if (support.said !== undefined) return support.said ?? none
  return 'as' in support ? support.as : none
}

function writtenAs(support: Support): string {
  if ('as' in support)
    return support.refused === undefined ? support.as : `${support.as}; **refused**: ${support.refused}`
  return 'refused' in support ? `**refused**: ${support.refused}` : `*left out*: ${support.withoutEffect}`
}

function memberSection(title: string, members: MemberTable): string {
  const rows = Object.entries(members)
    .flatMap(([name, { translation }]) => (translation === undefined ? [] : [{ name, translation }]))
    .toSorted((left, right) => (left.name < right.name ? -1 : 1))
    .map(({ name, translation }) => [`\`${name}\``, translatedAs(translation)])
  return `## ${title}\n\nA member that is not listed is refused.\n\n${markdown([['', ''], ...rows])}`
}

function translatedAs(translation: Translation): string {
  if (translation === 'carried') return 'carried'
  if ('hint' in translation) return `carried between chat and responses, *left out* elsewhere: ${translation.hint}`
  if ('withoutEffect' in translation) return `*without effect*: ${translation.withoutEffect}`
  if ('leftOut' in translation) {
    const { leftOut, otherwise, onlyAs = [] } = translation
    const harmless = onlyAs.length === 0 ? '' : `, without effect as ${onlyAs.map(asJson).join(' or ')}`
    return `*left out and noted*${harmless}: ${leftOut}${otherwise === undefined ? '' : `; **refused**: ${otherwise}`}`
  }
  const { onlyAs, refused } = translation
  if (onlyAs === undefined) return `**refused**: ${refused}`
  return `**refused** unless it is ${onlyAs.map(asJson).join(' or ')}: ${refused}`
}

const asJson = (value: unknown) => `\`${JSON.stringify(value)}\``

function markdown([head = [], ...rows]: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]) => `| ${cells.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |`
  return `${[line(head), line(head.map(() => '---')), ...rows.map(line)].join('\n')}\n`
}
