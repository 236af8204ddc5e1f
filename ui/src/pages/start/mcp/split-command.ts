/** Splits a command line at spaces; quotes group. Nothing is expanded. */
export function splitCommand(text: string): string[] {
  const words: string[] = []
  for (const match of text.matchAll(/(?:"[^"]*"|'[^']*'|[^\s"'])+/g))
    words.push(match[0].replaceAll(/"([^"]*)"|'([^']*)'/g, '$1$2'))
  return words
}
