/**
 * Completion in bash. The script passes the line as it was typed, and gets back what to put in the place of the last
 * word, quoted. So nothing of the line is run, and it works without the package bash-completion, for names with gaps,
 * and after characters at which bash cuts words in two (COMP_WORDBREAKS: `:`, `=`, `@`).
 */

export const bashScript = (name: string): string => `# bash completion for ${name}
__${name}_complete() {
    local line answer=()
    while IFS= read -r line; do
        answer+=("$line")
    done < <(${name} completion complete --bash="$COMP_WORDBREAKS" -- "\${COMP_LINE:0:COMP_POINT}" 2>/dev/null)
    local last=$((\${#answer[@]} - 1))
    ((last >= 0)) || return 0
    # Its last line says whether files are offered where there is no candidate.
    [[ \${answer[last]} == :0 ]] || compopt +o default 2>/dev/null
    unset 'answer[last]'
    COMPREPLY=(\${answer[@]+"\${answer[@]}"})
}

complete -o default -F __${name}_complete ${name}
`

export interface TypedLine {
  /** The words after the command's own name, without quotes; the last may be empty. */
  words: readonly string[]
  /** How many characters of the last word stay as they are: bash replaces what follows. */
  kept: number
  /** The quotation mark that is open at the end. */
  quote: '' | '"' | "'"
}

/** Takes a line apart as bash does (bash manual, Quoting; Programmable Completion). Nothing in it is expanded. */
export function readLine(line: string, breaks: string): TypedLine {
  const words: string[] = []
  let [word, isBegun, kept]: [string, boolean, number] = ['', false, 0]
  let quote: TypedLine['quote'] = ''
  for (let index = 0; index < line.length; index += 1) {
    const each = line.charAt(index)
    const next = line.charAt(index + 1)
    if (quote === '' && /\s/.test(each)) {
      if (isBegun) words.push(word)
      ;[word, isBegun, kept] = ['', false, 0]
      continue
    }
    isBegun = true
    if (each === quote) quote = ''
    else if (each === '\\' && (quote === '' || (quote === '"' && /["$`\\]/.test(next)))) {
      word += next
      index += 1
    } else if (quote === '' && (each === '"' || each === "'")) {
      quote = each
      kept = word.length
    } else {
      word += each
      if (quote === '' && breaks.includes(each)) kept = word.length
    }
  }
  return { words: [...words, word].slice(1), kept, quote }
}

/** What replaces the end of the last word; null where a candidate cannot stand within the open quotation marks. */
export function quotedFor({ kept, quote }: TypedLine, candidate: string): string | null {
  const rest = candidate.slice(kept)
  if (/\p{Cc}/u.test(rest)) return null
  if (quote === "'") return rest.includes("'") ? null : rest
  // Within double quotation marks bash looks for ! in its history, whatever stands before it.
  if (quote === '"') return rest.includes('!') ? null : rest.replaceAll(/["$`\\]/g, '\\$&')
  return rest.replaceAll(/[^\p{L}\p{N}_@%+=:,./-]/gu, '\\$&')
}
