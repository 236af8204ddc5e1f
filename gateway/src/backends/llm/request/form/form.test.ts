import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { readForm, writeForm } from './form.ts'
import { readFormBoundary } from './media-type.ts'
import { scanForm } from './scan.ts'

type Piece = { name: string; content: string | Buffer; filename?: string; type?: string }

/** A form as clients write it. */
function written(pieces: readonly Piece[], boundary = 'b1'): Buffer {
  const parts = pieces.flatMap(({ name, content, filename, type }) => [
    Buffer.from(`--${boundary}\r\nContent-Disposition: form-data; name="${name}"`),
    Buffer.from(filename === undefined ? '' : `; filename="${filename}"`),
    Buffer.from(type === undefined ? '\r\n\r\n' : `\r\nContent-Type: ${type}\r\n\r\n`),
    Buffer.from(content),
    Buffer.from('\r\n'),
  ])
  return Buffer.concat([...parts, Buffer.from(`--${boundary}--\r\n`)])
}

const audio: Piece = {
  name: 'file',
  content: Buffer.from([0, 13, 10, 255]),
  filename: 'a.mp3',
  type: 'audio/mpeg',
}

describe('readForm', () => {
  it('reads texts as a JSON object, and files', () => {
    const texts = [
      { name: 'model', content: 'whisper-1' },
      { name: 'stream', content: 'true' },
      { name: 'include[]', content: 'logprobs' },
      { name: 'include[]', content: 'usage' },
      { name: 'prompt', content: '' },
    ]
    const read = readForm(written([audio, ...texts]), 'b1')
    if (read.kind !== 'form') throw new Error(read.message)
    const { fields, files } = read.form
    expect(fields.value).toEqual({
      ...{ model: 'whisper-1', stream: true, prompt: '' },
      'include[]': ['logprobs', 'usage'],
    })
    expect(JSON.parse(fields.text)).toEqual(fields.value)
    expect(files).toEqual([
      { name: 'file', filename: 'a.mp3', contentType: 'audio/mpeg', content: audio.content },
    ])
  })

  const model = { name: 'model', content: 'm' }
  it.each<[string, Piece[]]>([
    ['a duplicate field', [model, model]],
    ['a model in a file', [{ ...model, filename: 'm.txt' }]],
    ['a model in a list', [{ name: 'model[]', content: 'm' }]],
    ['further models in a list', [model, { name: 'models[]', content: 'other' }]],
    ['further models by index', [model, { name: 'fallbacks[0]', content: 'other' }]],
    ['a prompt in an object', [{ name: 'prompt[x]', content: 'm' }]],
    [
      'a text and a file of the same name',
      [model, { name: 'x[]', content: '' }, { name: 'x[]', content: '', filename: 'f' }],
    ],
    ['a default charset', [{ name: '_charset_', content: 'utf-16' }]],
    ['a prototype', [{ name: '__proto__', content: '1' }]],
    ['a text in another charset', [{ ...model, type: 'text/plain; charset=utf-16' }]],
    ['a text that is no UTF-8', [{ name: 'prompt', content: Buffer.from([255]) }]],
    ['a binary text', [{ ...model, type: 'application/octet-stream' }]],
    ['texts that are too large', [{ name: 'prompt', content: 'x'.repeat(262_145) }]],
  ])('refuses %s', (_, pieces) => {
    expect(readForm(written(pieces), 'b1').kind).toBe('invalid')
  })
})

describe('scanForm', () => {
  const field = 'Content-Disposition: form-data; name="model"'
  it.each([
    ['nothing', ''],
    ['a preamble', `x\r\n--b1\r\n${field}\r\n\r\nm\r\n--b1--\r\n`],
    ['an epilogue', `--b1\r\n${field}\r\n\r\nm\r\n--b1--\r\nx`],
    ['no end', `--b1\r\n${field}\r\n\r\nm\r\n`],
    ['no parts', '--b1--\r\n'],
    ['bare line feeds', `--b1\n${field}\n\nm\n--b1--\n`],
    ['spaces after a boundary', `--b1 \r\n${field}\r\n\r\nm\r\n--b1--\r\n`],
    ['a longer boundary', `--b12\r\n${field}\r\n\r\nm\r\n--b12--\r\n`],
    ['a folded header', `--b1\r\nContent-Disposition: form-data;\r\n name="model"\r\n\r\nm\r\n--b1--\r\n`],
    ['no header', '--b1\r\n\r\nm\r\n--b1--\r\n'],
    ['a header twice', `--b1\r\n${field}\r\n${field}\r\n\r\nm\r\n--b1--\r\n`],
    ['an unknown header', `--b1\r\n${field}\r\nX-Name: a\r\n\r\nm\r\n--b1--\r\n`],
    ['an encoding', `--b1\r\n${field}\r\nContent-Transfer-Encoding: base64\r\n\r\nbQ==\r\n--b1--\r\n`],
    ['an escaped name', '--b1\r\nContent-Disposition: form-data; name="mo\\del"\r\n\r\nm\r\n--b1--\r\n'],
    ['an open quote', '--b1\r\nContent-Disposition: form-data; name="model\r\n\r\nm\r\n--b1--\r\n'],
    ['an encoded filename', `--b1\r\n${field}; filename*=utf-8''a\r\n\r\nm\r\n--b1--\r\n`],
    ['another disposition', '--b1\r\nContent-Disposition: attachment; name="model"\r\n\r\nm\r\n--b1--\r\n'],
    ['headers that are too long', `--b1\r\n${field}; filename="${'x'.repeat(5000)}"\r\n\r\nm\r\n--b1--\r\n`],
    ['too many parts', `${`--b1\r\n${field}\r\n\r\nm\r\n`.repeat(65)}--b1--\r\n`],
  ])('refuses %s', (_, text) => {
    expect(scanForm(Buffer.from(text), 'b1').kind).toBe('invalid')
  })
})

describe('readFormBoundary', () => {
  it.each([
    ['multipart/form-data; boundary=abc', 'abc'],
    ['Multipart/Form-Data;boundary="a b"', undefined],
    ['multipart/form-data; boundary="a=b/c"; charset=utf-8', 'a=b/c'],
    ['multipart/form-data; boundary=----WebKitFormBoundaryx1', '----WebKitFormBoundaryx1'],
  ])('reads %s', (type, boundary) => {
    const found = readFormBoundary(type)
    expect(found).toEqual(boundary === undefined ? { kind: 'invalid' } : { kind: 'boundary', boundary })
  })

  it.each([
    'multipart/form-data',
    'multipart/form-data; boundary=',
    'multipart/form-data; boundary=a; boundary=b',
    'multipart/form-data; boundary=a; charset=utf-16',
    `multipart/form-data; boundary=${'x'.repeat(71)}`,
  ])('refuses %s', (type) => {
    expect(readFormBoundary(type)).toEqual({ kind: 'invalid' })
  })

  it('is undefined for other types', () => {
    expect(readFormBoundary('application/json')).toBeUndefined()
    expect(readFormBoundary('multipart/mixed; boundary=a')).toBeUndefined()
  })
})

const names = fc.constantFrom('model', 'prompt', 'language', 'temperature', 'x[]')
const bytes = fc.uint8Array({ maxLength: 40 }).map((array) => Buffer.from(array))
const hostile = fc
  .array(
    fc.constantFrom(
      '\r\n',
      '\n',
      '--',
      'b1',
      '--b1',
      '--b1--',
      'Content-Disposition: form-data; name="model"',
      'm',
    ),
    {
      maxLength: 14,
    },
  )
  .map((words) => Buffer.from(words.join('')))
const files = fc.array(
  fc.record({
    name: fc.constantFrom('file', 'image[]', 'mask'),
    filename: fc.constantFrom('a', 'b.png'),
    content: fc.oneof(bytes, hostile),
  }),
  { maxLength: 3 },
)

/** The parts that the parser of the platform reads. */
async function partsOf(body: Buffer, contentType: string): Promise<[string, string][]> {
  const form = await new Response(new Uint8Array(body), {
    headers: { 'content-type': contentType },
  }).formData()
  const parts: [string, string][] = []
  for (const [name, value] of form) {
    const content = typeof value === 'string' ? Buffer.from(value) : Buffer.from(await value.arrayBuffer())
    parts.push([name, content.toString('hex')])
  }
  return parts
}

describe('a form', () => {
  it('is written so that other parsers read its texts and files, with any content', async () => {
    await fc.assert(
      fc.asyncProperty(fc.dictionary(names, fc.string({ unit: 'binary' })), files, async (texts, given) => {
        const parts = given.map((file) => ({ ...file, contentType: undefined }))
        const { body, contentType } = writeForm(texts, parts)
        const expected = [
          ...Object.entries(texts).map(([name, text]) => [name, Buffer.from(text).toString('hex')]),
          ...given.map(({ name, content }) => [name, content.toString('hex')]),
        ]
        const found = readFormBoundary(contentType)
        if (found?.kind !== 'boundary') throw new Error('no boundary')
        const scanned = scanForm(body, found.boundary)
        if (scanned.kind === 'parts')
          expect(scanned.parts.map(({ name, content }) => [name, content.toString('hex')])).toEqual(expected)
        else expect(expected).toEqual([])
        if (expected.length > 0) expect(await partsOf(body, contentType)).toEqual(expected)
      }),
    )
  })

  it('of any bytes is refused, or rewritten to one that other parsers read in the same way', async () => {
    const wire = fc.oneof(
      hostile,
      fc.tuple(files, fc.nat(), fc.constantFrom('\r', '\n', '-', '"', ';', '\0')).map(([given, at, text]) => {
        const body = written([{ name: 'model', content: 'm' }, ...given])
        body.write(text, at % body.length)
        return body
      }),
    )
    await fc.assert(
      fc.asyncProperty(wire, async (body) => {
        const read = readForm(body, 'b1')
        if (read.kind === 'invalid') return
        const { fields, files: found } = read.form
        const rewritten = writeForm(fields.value, found)
        const texts = Object.entries(fields.value).flatMap(([name, value]) =>
          [value].flat().map((text) => [name, Buffer.from(String(text)).toString('hex')]),
        )
        const parts = found.map(({ name, content }) => [name, content.toString('hex')])
        expect(await partsOf(rewritten.body, rewritten.contentType)).toEqual([...texts, ...parts])
      }),
      { numRuns: 500 },
    )
  })

  it('is scanned in linear time', () => {
    const boundary = `${'-'.repeat(60)}x`
    const body = Buffer.from(
      `--${boundary}\r\nContent-Disposition: form-data; name="file"; filename="f"\r\n\r\n${`\r\n--${'-'.repeat(60)}`.repeat(200_000)}`,
    )
    expect(scanForm(body, boundary).kind).toBe('invalid')
  })
})
