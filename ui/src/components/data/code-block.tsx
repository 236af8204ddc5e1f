import { CopyButton } from '../action/copy-button.tsx'

/** Text to copy: a command, a snippet, an id. */
export function CodeBlock({ text, label }: { text: string; label: string }) {
  return (
    <div className="relative rounded-lg border border-line bg-sunken">
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a scrollable area must be reachable by keyboard */}
      <section tabIndex={0} aria-label={label} className="overflow-x-auto p-4 pr-12">
        <pre className="text-xs leading-relaxed">
          <code>{text}</code>
        </pre>
      </section>
      <div className="absolute top-1.5 right-1.5">
        <CopyButton text={text} label={`Copy ${label}`} />
      </div>
    </div>
  )
}
