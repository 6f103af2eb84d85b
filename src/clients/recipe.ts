/**
 * What a recipe is: how one client is told to talk to a gateway. Command line and console show the same recipes; only
 * the command line writes files. A recipe is text in the client's own formats and touches nothing.
 */

/** The wire language in which a client asks, and in which a connection is checked. */
export type ClientLanguage = 'chat' | 'responses' | 'messages' | 'gemini'

export interface Connection {
  /** The gateway's origin, without a path. */
  gatewayUrl: string
  /** Names of models, the one for daily work first, the one for small tasks last; empty: the client's own choice. */
  models: readonly string[]
  /** The token's secret. */
  token: string
  /** An absolute path where the secret lies; null where a shell exports it as `GATEHOUSE_TOKEN`. */
  tokenFile: string | null
}

export interface ClientFile {
  /** From the home directory on; the ending says the format: json, toml, yaml, yml or env. */
  path: string
  /** A variable of the client that moves the beginning of the path, and what it stands for. */
  movedBy?: { readonly variable: string; readonly from: string }
  /** Other names under which the client looks for the file; one that is there is used. */
  alternatives?: readonly string[]
  /** All of the file where there is none yet. */
  text: string
  /** Members at the top that only make a new file valid: they stay as they are where the file has them. */
  keeps?: readonly string[]
  /**
   * Members that must not be there beside these: they would go before them, or contradict them. One that the text has
   * as well is replaced as a whole, and taken back as a whole.
   */
  removes?: readonly (readonly string[])[]
  /** Members that only make the object around them valid, and that the client may rewrite by itself. */
  stamps?: readonly (readonly string[])[]
}

export interface ClientSetup {
  /** What a shell exports before it starts the client. */
  environment: Readonly<Record<string, string>>
  files: readonly ClientFile[]
  /** Code of an application. */
  snippets: readonly { readonly language: string; readonly text: string }[]
  /** What a person does or has to know. */
  steps: readonly string[]
}

export interface Recipe {
  /** As on the command line. */
  readonly name: string
  readonly title: string
  readonly speaks: ClientLanguage
  /** The client has no models of its own for a gateway: it must be told at least one. */
  readonly needsModel?: true
  setup(connection: Connection): ClientSetup
  /** How the client is told to let each person sign in at the gateway, where it can. */
  readonly signIn?: SignInRecipe
}

/** A client that signs people in at the gateway by itself (RFC 8628), and so needs no token. */
export interface SignInRecipe {
  /** The OAuth client that it is, which has to be registered. */
  readonly clientId: string
  /** What an administrator puts on each machine. `path` is absolute. */
  setup(gatewayUrl: string): { readonly files: readonly SignInFile[]; readonly steps: readonly string[] }
}

export interface SignInFile {
  /** The platform it is for. */
  platform: string
  path: string
  text: string
}

/** The variable that a shell exports where the client can read its secret from one. */
export const tokenVariable = 'GATEHOUSE_TOKEN'

/** What a shell exports where the secret lies in no file. */
export const exportedToken = ({ token, tokenFile }: Connection): Readonly<Record<string, string>> =>
  tokenFile === null ? { [tokenVariable]: token } : {}

/** A text in double quotes, as JSON, TOML and YAML read it. */
export const quoted = (text: string): string => JSON.stringify(text)

export const json = (value: unknown): string => `${JSON.stringify(value, null, 2)}\n`

/** A word of a shell's command line. */
export const shellWord = (text: string): string =>
  /^[\w./:@%+,=-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`

/** The lines of a .env file. */
export const environmentFile = (variables: Readonly<Record<string, string>>): string =>
  Object.entries(variables)
    .map(([name, value]) => `${name}=${/^[\w./:@%+,-]*$/.test(value) ? value : quoted(value)}\n`)
    .join('')

/** What of a setup can be copied: exports, files and code, each with where it goes. */
export function setupBlocks({ environment, files, snippets }: ClientSetup): { where: string; text: string }[] {
  const exports = Object.entries(environment).map(([name, value]) => `export ${name}=${shellWord(value)}\n`)
  return [
    ...(exports.length === 0 ? [] : [{ where: 'In the shell', text: exports.join('') }]),
    ...files.map(({ path, text }) => ({ where: `In ~/${path}`, text })),
    ...snippets.map(({ language, text }) => ({ where: language, text })),
  ]
}
