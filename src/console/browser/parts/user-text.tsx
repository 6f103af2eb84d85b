/**
 * Words of others: callers name models, people name tokens. They are shown apart from what stands around them, with what
 * cannot be seen or would turn letters round made visible; a word that is long may break anywhere, one of some length
 * where there is little room, others never.
 */

/**
 * Controls, format characters (bidi, zero width) and blanks that do not look like any. Line ends and tabs may stay, and
 * what joins two pictures into one.
 */
const unseen =
  /(?!(?<=\p{Extended_Pictographic}[\ufe0f\p{Emoji_Modifier}]?)\u200d\p{Extended_Pictographic})[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\u115f\u1160\u2800\u3164\uffa0]/gu

const named = (character: string): string =>
  `⟨U+${(character.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, '0')}⟩`

/** A text with what cannot be seen in it written out: `gpt⟨U+202E⟩4`. */
export const showInvisible = (text: string): string =>
  text.replaceAll(unseen, (character) => (/[\n\t]/.test(character) ? character : named(character)))

/** A text as a person can type it: nothing unseen, and one blank for several. */
export const comparableText = (text: string): string => text.replaceAll(unseen, '').replaceAll(/\s+/g, ' ').trim()

const longWord = /\S{24}/
const halfLongWord = /\S{13}/

export const UserText = ({ children }: { children: string }) => {
  const text = showInvisible(children)
  if (!longWord.test(text)) return <bdi class={halfLongWord.test(text) ? 'said half-long' : 'said'}>{text}</bdi>
  // A table cuts it after three lines: the whole of it is told to whoever points there.
  return (
    <bdi class="said long" title={text}>
      {text}
    </bdi>
  )
}

/** The same for what may be a text or more than that, such as the content of a cell. */
export const userText = <Content,>(content: Content) =>
  typeof content === 'string' ? <UserText>{content}</UserText> : content
