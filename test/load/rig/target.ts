/** One thing that is measured: where it listens, and what it wants to be sent. */
export interface Target {
  name: string
  /** The full address of chat completions. */
  url: string
  token: string
  /** Headers that it wants besides. */
  headers?: Readonly<Record<string, string>>
}

export const benchModel = 'bench-model'

const prompt = 'Why is the sky blue? '.repeat(10)

/** A conversation of so many messages, as JSON text. */
export const requestBody = (stream: boolean, messages = 1): string =>
  JSON.stringify({
    model: benchModel,
    messages: Array.from({ length: messages }, (_, index) => ({
      role: index % 2 === 0 ? 'user' : 'assistant',
      content: prompt,
    })),
    ...(stream && { stream }),
  })

export const requestHeaders = ({ token, headers }: Target): Record<string, string> => ({
  authorization: `Bearer ${token}`,
  'content-type': 'application/json',
  ...headers,
})

/** Between the frames of a stream that says how long it is, in milliseconds: ten words a second. */
export const heldPauseMs = 100

/** The first text of such a stream: nothing that a term of the chain may begin with is left open by it. */
export const firstText = 'Because, '

/** Asks for a stream of so many frames of text, with so long a pause between them. */
export const streamBody = (frames: number, pauseMs = heldPauseMs): string =>
  JSON.stringify({ ...JSON.parse(requestBody(true)), max_tokens: frames, user: `pause ${pauseMs}` })
