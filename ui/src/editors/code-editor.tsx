import { lazy, Suspense } from 'react'
import { classNames } from '../components/class-names.ts'
import { inputClass } from '../components/form/input.tsx'

const CodeMirror = lazy(() => import('./code-mirror.tsx'))

/** A mistake between two character offsets. */
export type EditorMistake = {
  readonly from: number
  readonly to: number
  readonly message: string
  readonly severity?: 'error' | 'warning'
}

export type Suggestion = {
  readonly label: string
  /** Short, beside the label. */
  readonly detail?: string
  /** Documentation of the selected suggestion. */
  readonly info?: string
  /** Text to insert; the label if absent. */
  readonly insert?: string
  readonly kind?: 'property' | 'variable' | 'function' | 'enum' | 'constant'
}

/** Suggestions that replace the text from an offset to the cursor. */
export type Suggestions = { readonly from: number; readonly items: readonly Suggestion[] }

export type CodeEditorProps = {
  readonly language: 'yaml' | 'json' | 'cel' | 'text'
  readonly value: string
  /** Called at each change; absent for a text that only is displayed. */
  onChange?(value: string): void
  onBlur?(): void
  /** Accessible name. */
  readonly label: string
  readonly id?: string | undefined
  readonly describedBy?: string | undefined
  readonly invalid?: boolean | undefined
  readonly readOnly?: boolean
  readonly placeholder?: string | undefined
  /** `line` grows with its text, `tall` has a height of its own and line numbers. */
  readonly size?: 'line' | 'tall'
  /** Called 300 ms after the last change, and for the first text. */
  check?(text: string): readonly EditorMistake[] | Promise<readonly EditorMistake[]>
  /** Mistakes from elsewhere, such as a refused save. */
  readonly mistakes?: readonly EditorMistake[]
  complete?(text: string, offset: number): Suggestions | undefined
}

/** An editor of code. Its library is loaded with the first one; until then a plain input works. */
export function CodeEditor(props: CodeEditorProps) {
  return (
    <Suspense fallback={<PlainEditor {...props} />}>
      <CodeMirror {...props} />
    </Suspense>
  )
}

function PlainEditor({ value, onChange, label, id, readOnly, placeholder, size }: CodeEditorProps) {
  return (
    <textarea
      id={id}
      aria-label={label}
      rows={size === 'tall' ? 24 : Math.max(1, value.split('\n').length)}
      spellCheck={false}
      readOnly={readOnly || onChange === undefined}
      value={value}
      placeholder={placeholder}
      onChange={(event) => onChange?.(event.target.value)}
      className={classNames(inputClass, 'h-auto py-1.5 font-mono text-xs leading-relaxed')}
    />
  )
}
