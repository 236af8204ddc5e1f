import { globSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import { scan, type Token } from './scan.ts'

function texts(source: string, kind: Token['kind']): string[] {
  return scan(source)
    .filter((token) => token.kind === kind)
    .map(({ text }) => text)
}

describe('scan', () => {
  it('returns line and block comments', () => {
    const source = '#!/usr/bin/env node\na // one\n/* two\n lines */ b /** doc */'
    expect(texts(source, 'comment')).toEqual([
      '#!/usr/bin/env node',
      '// one',
      '/* two\n lines */',
      '/** doc */',
    ])
  })

  it.each([
    ['single quotes', "const a = '// no'"],
    ['double quotes', 'const a = "/* no */"'],
    ['an escaped quote', "const a = 'it\\'s // no'"],
    ['a template', 'const a = `// no`'],
    ['a template with a substitution', `const a = \`http://\${b ? '// no' : \`/* no */\${c}\`}// no\``],
    ['an object inside a substitution', `const a = \`\${f({ b: { c } })} // no\``],
    ['a regular expression', 'const a = /\\/\\/ no/'],
    ['a class of a regular expression', `f(/[/'"\`]/.source)`],
    ['a regular expression after a condition', "if (a) /'/.test(b)"],
    ['a regular expression after return', "return /'/.test(b)"],
    ['a regular expression after an arrow', "const a = () => /['`]/g"],
  ])('finds no comment in %s', (_, source) => {
    expect(texts(source, 'comment')).toEqual([])
    expect(scan(`${source}\n// yes`).at(-1)).toMatchObject({ kind: 'comment', text: '// yes' })
  })

  it.each(['a / b / c', 'f(a) / b / c', 'a[0] / b / c', 'limits.of / b / c', 'a++ / b / c', '2 / b / c'])(
    'reads the slashes of %s as division',
    (source) => {
      expect(texts(source, 'regex')).toEqual([])
    },
  )

  it('returns the substitutions of a template and the tokens inside', () => {
    const source = `\`a \${b('c')} d\``
    const [template, ...inner] = scan(source)
    expect(template).toMatchObject({ kind: 'template', text: source, substitutions: [{ start: 3, end: 12 }] })
    expect(inner.map(({ text }) => text)).toEqual(['b', '(', "'c'", ')'])
  })

  it('reads every source file of the project to the end', () => {
    const cwd = fileURLToPath(new URL('../..', import.meta.url))
    const paths = globSync('{gateway/{src,test,bench},scripts,examples}/**/*.{ts,mjs}', { cwd })
    // A literal that is misread leaves a quote or a backslash outside of literals.
    const misread = paths.filter((path) =>
      scan(readFileSync(`${cwd}/${path}`, 'utf8')).some(
        ({ kind, text }) => kind === 'punctuator' && /['"`\\]/.test(text),
      ),
    )
    expect(paths.length).toBeGreaterThan(500)
    expect(misread).toEqual([])
  })
})
