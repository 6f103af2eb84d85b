/** A text in a body or frame, as the walk over it finds it. */

/**
 * A text inside a parsed body, which a policy may read and replace. Replacing it also removes what repeats or signs
 * the text: log probabilities, the signature of signed thinking.
 */
export interface TextSlot {
  /** The outermost member around it: `messages`. Only changed members are rewritten. */
  readonly member: string
  readonly kind: TextKind
  /** The role of the text's author, if the dialect gives one: `system`, `user`, `assistant`, `tool`. */
  readonly role: string | null
  /** Tool arguments are JSON text, even if the body holds them as an object. */
  readonly text: string
  /**
   * The message, or the result of a tool, that the text is a part of, if it may have several parts: these are also read
   * as one text.
   */
  readonly message?: object
  replace(text: string): void
}

/**
 * `tool_arguments` are JSON text (all others are plain): their replacement must still parse. A `name` is the name of
 * a called tool, of its server, or of a speaker.
 */
export type TextKind = 'content' | 'reasoning' | 'refusal' | 'tool_arguments' | 'tool_result' | 'name'
