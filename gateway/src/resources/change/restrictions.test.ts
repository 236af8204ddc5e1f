import { describe, expect, it } from 'vitest'
import { configSchema } from '../../config/schema.ts'
import { shapeOf as describeSchema, type Shape } from '../../schema/shape.ts'
import { createExpand } from '../hybrid/expand.ts'
import { secretPaths } from '../secrets/secret-paths.ts'
import { isFilePath, isMetadataUrl } from './restrictions.ts'

describe('an address', () => {
  it.each([
    '169.254.169.254',
    '169.254.169.254:80',
    'http://169.254.169.254/latest',
    'HTTPS://user@169.254.0.1:8443',
    'http://2852039166/',
    '0xa9fea9fe:80',
    '0251.0376.0251.0376',
    '169.254.43518',
    '[::ffff:169.254.169.254]:80',
    '::ffff:a9fe:a9fe',
    'http://[fe80::1%25eth0]/',
    'fe80::1%eth0',
    '[fd00:ec2::254]:80',
    '64:ff9b::169.254.169.254',
    '64:ff9b:1::169.254.169.254',
    '[2002:a9fe:a9fe::1]:80',
    'metadata.google.internal',
    'http://Metadata.Google.Internal.:80/x',
    ' http://169.254.169.254 ',
    'ws://169.254.169.254',
    'http:169.254.169.254',
    'http:\\\\169.254.169.254\\x',
    'http://%31%36%39.254.169.254/',
    'http://169.254.\t169.254/',
    `http://169.254.169.254/${'x'.repeat(5_000)}`,
    `http://${'x'.repeat(5_000)}:y@169.254.169.254/`,
    'http://169。254。169。254/',
  ])('%s is a metadata address', (text) => {
    expect(isMetadataUrl(text)).toBe(true)
  })

  it.each([
    'localhost:80',
    '10.0.0.1',
    'http://[::1]:1/',
    'https://api.openai.com/v1',
    '169.253.1.1:80',
    'metadata',
    'my-metadata.google.internal.example.com',
    'the address 169.254.169.254',
    '',
    '/backend',
  ])('%s is not a metadata address', (text) => {
    expect(isMetadataUrl(text)).toBe(false)
  })
})

describe('file paths', () => {
  it('are detected at every place of the schema', () => {
    const missed: string[] = []
    const seen = new Set<Shape>()
    const visit = (shape: Shape, steps: readonly string[]): void => {
      if (seen.has(shape) && shape.kind !== 'string') return
      seen.add(shape)
      if (
        shape.kind === 'string' &&
        /^(?:Path of a file|Path of a catalog|Path of the document|File with)/.test(shape.meta.doc) &&
        !isFilePath(steps)
      ) {
        missed.push(steps.join('.'))
      }
      if (shape.kind === 'object')
        for (const [key, { shape: field }] of shape.fields) visit(field, [...steps, key])
      if (shape.kind === 'list') visit(shape.item, [...steps, '[]'])
      if (shape.kind === 'map') visit(shape.value, [...steps, '<name>'])
      if (shape.kind === 'choice') for (const option of shape.shapes) visit(option, steps)
    }
    visit(describeSchema(configSchema), [])
    expect(missed).toEqual([])
  })
})

describe('references to the environment', () => {
  it('are expanded in values of the database only if allowed', () => {
    const expand = createExpand(['A'], { A: 'a', B: 'b' })
    // biome-ignore lint/suspicious/noTemplateCurlyInString: references as users write them
    const { value } = expand({ x: ['$A ${A} $B ${B} $$ $A$$A ${A:-z}'], y: 1 })
    // biome-ignore lint/suspicious/noTemplateCurlyInString: references as users write them
    expect(value).toEqual({ x: ['a a $B ${B} $$ a$a a'], y: 1 })
    expect(expand('$A_').value).toBe('$A_')
  })

  it('do not copy values without references', () => {
    const value = { a: ['b'] }
    expect(createExpand(['A'], {})(value).value).toBe(value)
    expect(createExpand([], { A: 'a' })('$A')).toEqual({ value: '$A', missing: [] })
    expect(createExpand(['A'], {})('$A').missing).toEqual(['A'])
  })
})

describe('secrets of stored values', () => {
  it.each([
    ['llm.apiKey', { key: 'k', metadata: { key: 'no' } }, [['key']]],
    ['llm.model', { name: 'm', provider: 'openai', params: { apiKey: 's' } }, [['params', 'apiKey']]],
    [
      'mcp.target',
      { name: 't', stdio: { cmd: 'x', env: { A: 's', B: 't' } } },
      [
        ['stdio', 'env', 'A'],
        ['stdio', 'env', 'B'],
      ],
    ],
    [
      'mcp.policy',
      { name: 'apiKey', policy: { keys: [{ key: 'a' }, { key: 'b' }] } },
      [
        ['policy', 'keys', 0, 'key'],
        ['policy', 'keys', 1, 'key'],
      ],
    ],
    ['llm.policy', { name: 'cors', policy: { allowOrigins: [] } }, []],
    ['llm.future', { key: 'k' }, []],
  ])('%s: %j', (kind, value, paths) => {
    expect(secretPaths(kind)(value as never)).toEqual(paths)
  })
})
