import { ChevronRight } from 'lucide-react'
import type { CelVariable } from '../../../editors/cel/vocabulary.ts'

/** Variables of a scope with their members. A click inserts the name. */
export function VariableList({
  variables,
  path = '',
  onInsert,
}: {
  variables: readonly CelVariable[]
  path?: string
  onInsert(text: string): void
}) {
  return (
    <ul className={path === '' ? 'space-y-1' : 'ml-3 space-y-0.5 border-l border-line pl-3'}>
      {variables.map((variable) => (
        <li key={variable.name}>
          <Variable variable={variable} path={`${path}${variable.name}`} onInsert={onInsert} />
        </li>
      ))}
    </ul>
  )
}

function Variable({
  variable,
  path,
  onInsert,
}: {
  variable: CelVariable
  path: string
  onInsert(text: string): void
}) {
  const { doc, members, open } = variable
  const name = (
    <button
      type="button"
      className="min-h-6 rounded px-1 font-mono text-xs text-accent hover:bg-hover"
      onClick={() => onInsert(path)}
      title={`Insert ${path}`}
    >
      {variable.name}
      {open && '.*'}
    </button>
  )
  const about = <span className="text-xs text-ink-soft">{doc.replaceAll('`', '')}</span>
  if (members === undefined || members.length === 0) {
    return (
      <div className="flex min-h-6 flex-wrap items-center gap-x-2 pl-5">
        {name}
        {about}
      </div>
    )
  }
  return (
    <details className="group">
      <summary className="flex min-h-6 cursor-pointer list-none flex-wrap items-center gap-x-2 rounded">
        <ChevronRight
          className="size-3.5 shrink-0 self-center text-ink-faint transition-transform group-open:rotate-90"
          aria-hidden
        />
        <span className="font-mono text-xs font-medium">{variable.name}</span>
        {about}
      </summary>
      <VariableList variables={members} path={`${path}.`} onInsert={onInsert} />
    </details>
  )
}
