/** One thing that is measured: where it listens, and what it wants to be sent. */
export interface Target {
  name: string
  /** The full address of chat completions. */
  url: string
  token: string
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

export const requestHeaders = ({ token }: Target): Record<string, string> => ({
  authorization: `Bearer ${token}`,
  'content-type': 'application/json',
})
