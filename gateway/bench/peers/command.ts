/** A gateway installed by the reader: its name, and the command that starts it. */
export type PeerCommand = { name: string; command: string[] }

const example = '--peer "agentgateway=/usr/local/bin/agentgateway"'

/** Parses `NAME=COMMAND`. The command is split into words, as a shell does without expansion. */
export function parsePeer(text: string): PeerCommand {
  const at = text.indexOf('=')
  const name = text.slice(0, Math.max(at, 0)).trim()
  if (!/^[a-z0-9][\w .-]*$/i.test(name)) {
    throw new Error(`--peer must be "NAME=COMMAND", for example ${example}, got "${text}"`)
  }
  const command = splitWords(text.slice(at + 1))
  if (command === undefined) {
    throw new Error(`the command of peer ${name} has an unclosed quote: ${text.slice(at + 1)}`)
  }
  if (command.length === 0) throw new Error(`the command of peer ${name} is empty: use ${example}`)
  return { name, command }
}

/** Words of a command line. Quotes of both kinds group, a backslash escapes; undefined if a quote is open. */
export function splitWords(text: string): string[] | undefined {
  const words: string[] = []
  let word: string | undefined
  let quote = ''
  for (let index = 0; index < text.length; index += 1) {
    const character = text[index] ?? ''
    if (character === '\\' && quote !== "'") {
      index += 1
      word = (word ?? '') + (text[index] ?? '')
    } else if (quote !== '') {
      if (character === quote) quote = ''
      else word = (word ?? '') + character
    } else if (character === '"' || character === "'") {
      quote = character
      word ??= ''
    } else if (/\s/.test(character)) {
      if (word !== undefined) words.push(word)
      word = undefined
    } else {
      word = (word ?? '') + character
    }
  }
  if (quote !== '') return undefined
  return word === undefined ? words : [...words, word]
}
