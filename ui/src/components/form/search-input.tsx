import { Search } from 'lucide-react'
import { useEffect, useState } from 'react'
import { inputClass } from './input.tsx'

type SearchInputProps = { value: string; onChange(value: string): void; label: string; placeholder?: string }

/** A search box. Reports its text 200 ms after the last key. */
export function SearchInput({ value, onChange, label, placeholder = 'Search' }: SearchInputProps) {
  const [text, setText] = useState(value)
  useEffect(() => setText(value), [value])
  useEffect(() => {
    if (text === value) return
    const timer = setTimeout(() => onChange(text), 200)
    return () => clearTimeout(timer)
  }, [text, value, onChange])
  return (
    <div className="relative w-full max-w-72 min-w-40">
      <Search
        className="pointer-events-none absolute top-1/2 left-2.5 size-4 -translate-y-1/2 text-ink-faint"
        aria-hidden
      />
      <input
        type="search"
        aria-label={label}
        placeholder={placeholder}
        value={text}
        onChange={(event) => setText(event.target.value)}
        className={`${inputClass} pl-8`}
      />
    </div>
  )
}
