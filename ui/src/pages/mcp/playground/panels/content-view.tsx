import { CodeBlock } from '../../../../components/data/code-block.tsx'
import { formatBytes } from '../../../../format/number.ts'
import { isObject } from '../../../../schema-form/model/value.ts'
import { textOf } from '../../servers/item.ts'
import type { Members } from '../client/mcp-client.ts'

const shownImages = new Set(['image/png', 'image/jpeg', 'image/gif', 'image/webp'])
const maxText = 200_000

/** One part of a result: text, image, resource. Everything of the server is text or a picture, never markup. */
export function ContentView({ content }: { content: Members }) {
  const { type, text, data, mimeType, resource, uri, name } = content
  if (typeof text === 'string') return <TextPart label={textOf(uri) || 'text'} text={text} />
  if (type === 'image' && typeof data === 'string' && shownImages.has(textOf(mimeType)))
    return (
      <img
        src={`data:${textOf(mimeType)};base64,${data}`}
        alt="Result of the tool"
        className="max-h-96 max-w-full rounded-lg border border-line bg-sunken"
      />
    )
  if (typeof content['blob'] === 'string')
    return <Binary size={content['blob'].length} type={textOf(mimeType)} />
  if (typeof data === 'string') return <Binary size={data.length} type={textOf(mimeType)} />
  if (isObject(resource)) return <ContentView content={resource} />
  if (type === 'resource_link')
    return (
      <p className="text-sm">
        <bdi>{textOf(name)}</bdi> <code className="break-all text-ink-soft">{textOf(uri)}</code>
      </p>
    )
  return <CodeBlock label="content" text={JSON.stringify(content, undefined, 2).slice(0, maxText)} />
}

function TextPart({ label, text }: { label: string; text: string }) {
  const isLong = text.length > maxText
  return (
    <div>
      {label !== 'text' && (
        <bdi className="mb-1 block font-mono text-xs break-all text-ink-faint">{label}</bdi>
      )}
      <CodeBlock label={label} text={isLong ? `${text.slice(0, maxText)}…` : pretty(text)} />
    </div>
  )
}

/** JSON in lines; other text unchanged. */
function pretty(text: string): string {
  if (!/^\s*[[{]/.test(text)) return text
  try {
    return JSON.stringify(JSON.parse(text), undefined, 2)
  } catch {
    return text
  }
}

function Binary({ size, type }: { size: number; type: string }) {
  return (
    <p className="text-sm text-ink-soft">
      {type || 'Binary data'}, {formatBytes(Math.round((size * 3) / 4))}
    </p>
  )
}
