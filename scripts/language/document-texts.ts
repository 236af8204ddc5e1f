import { Lexer } from 'yaml'
import { type Text, without, withoutCode } from './text.ts'

/** English in a Markdown document: everything except code, comments, tags and addresses of links. */
export function readMarkdown(path: string, source: string): Text[] {
  const patterns = [/^[ \t]*(```|~~~)[\s\S]*?^[ \t]*\1/gm, /<!--[\s\S]*?-->/g, /<\/?[a-z][^>\n]*>/gi]
  return [{ path, line: 1, text: withoutCode(patterns.reduce(without, source)) }]
}

/** Comments of a YAML document; comments on consecutive lines are one text. */
export function readYamlComments(path: string, source: string): Text[] {
  const texts: Text[] = []
  let line = 1
  for (const lexeme of new Lexer().lex(source)) {
    if (lexeme.startsWith('#')) addComment(texts, { path, line, text: lexeme.replace(/^#+/, ' ') })
    line += lexeme.split('\n').length - 1
  }
  return texts.map((text) => ({ ...text, text: withoutCode(text.text) }))
}

function addComment(texts: Text[], comment: Text): void {
  const last = texts.at(-1)
  if (last !== undefined && last.line + last.text.split('\n').length === comment.line) {
    last.text += `\n${comment.text}`
  } else texts.push(comment)
}
