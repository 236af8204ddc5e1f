import { memo, useMemo } from 'react'
import { CopyButton } from '../action/copy-button.tsx'
import { type Block, parseBlocks } from './parse-blocks.ts'
import type { Inline } from './parse-inline.ts'

/** Renders the Markdown of a model as elements. HTML in it stays text, images stay links. */
export const Markdown = memo(function Markdown({ text }: { text: string }) {
  const blocks = useMemo(() => parseBlocks(text), [text])
  return (
    <div className="space-y-3 leading-relaxed break-words">
      <Blocks blocks={blocks} />
    </div>
  )
})

function Blocks({ blocks }: { blocks: readonly Block[] }) {
  return blocks.map((block, index) => <BlockView key={index} block={block} />)
}

function BlockView({ block }: { block: Block }) {
  switch (block.kind) {
    case 'paragraph':
      return (
        <p>
          <Inlines content={block.content} />
        </p>
      )
    case 'heading':
      return (
        <p className={block.level <= 2 ? 'pt-1 text-base font-semibold' : 'pt-1 font-semibold'}>
          <Inlines content={block.content} />
        </p>
      )
    case 'code':
      return <Code language={block.language} text={block.text} />
    case 'quote':
      return (
        <blockquote className="space-y-2 border-l-2 border-line-strong pl-3 text-ink-soft">
          <Blocks blocks={block.blocks} />
        </blockquote>
      )
    case 'rule':
      return <hr className="border-line" />
    case 'list':
      return <List block={block} />
    case 'table':
      return <TableView block={block} />
  }
}

function List({ block }: { block: Extract<Block, { kind: 'list' }> }) {
  const items = block.items.map((blocks, index) => (
    <li key={index} className="space-y-1 pl-1">
      <Blocks blocks={blocks} />
    </li>
  ))
  return block.start === undefined ? (
    <ul className="list-disc space-y-1 pl-5 marker:text-ink-faint">{items}</ul>
  ) : (
    <ol start={block.start} className="list-decimal space-y-1 pl-5 marker:text-ink-faint">
      {items}
    </ol>
  )
}

function TableView({ block }: { block: Extract<Block, { kind: 'table' }> }) {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a scrollable area must be reachable by keyboard
    <section tabIndex={0} aria-label="Table" className="overflow-x-auto rounded-md border border-line">
      <table className="w-full text-left text-xs">
        <thead className="bg-sunken">
          <tr>
            {block.head.map((cell, index) => (
              <th key={index} scope="col" className="px-2.5 py-1.5 font-medium">
                <Inlines content={cell} />
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {block.rows.map((row, line) => (
            <tr key={line} className="border-t border-line">
              {row.map((cell, index) => (
                <td key={index} className="px-2.5 py-1.5 align-top">
                  <Inlines content={cell} />
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  )
}

function Code({ language, text }: { language: string; text: string }) {
  return (
    <div className="overflow-hidden rounded-md border border-line bg-sunken">
      <div className="flex h-8 items-center justify-between border-b border-line pr-0.5 pl-3 text-2xs text-ink-faint">
        <span className="font-mono">{language || 'text'}</span>
        <CopyButton text={text} label="Copy code" />
      </div>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a scrollable area must be reachable by keyboard */}
      <section tabIndex={0} aria-label="Code" className="overflow-x-auto p-3 -outline-offset-2">
        <pre className="text-xs leading-relaxed">
          <code>{text}</code>
        </pre>
      </section>
    </div>
  )
}

function Inlines({ content }: { content: readonly Inline[] }) {
  return content.map((inline, index) => <InlineView key={index} inline={inline} />)
}

function InlineView({ inline }: { inline: Inline }) {
  switch (inline.kind) {
    case 'text':
      return inline.text
    case 'break':
      return <br />
    case 'code':
      return <code className="rounded bg-hover px-1 py-0.5">{inline.text}</code>
    case 'strong':
      return (
        <strong className="font-semibold">
          <Inlines content={inline.content} />
        </strong>
      )
    case 'emphasis':
      return (
        <em>
          <Inlines content={inline.content} />
        </em>
      )
    case 'strike':
      return (
        <s>
          <Inlines content={inline.content} />
        </s>
      )
    case 'link':
      return (
        <a
          href={inline.address}
          target="_blank"
          rel="noopener noreferrer nofollow"
          className="text-accent underline underline-offset-2"
        >
          <Inlines content={inline.content} />
        </a>
      )
  }
}
